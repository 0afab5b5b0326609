//! Docs of resource types and properties, from the WIT packages that a component carries as custom sections. Read by
//! decoding only: nothing runs. A component without them has no docs, and is otherwise the same.

use std::collections::HashMap;

use wasmparser::{Parser, Payload};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Resolve, Type, TypeDefKind, TypeId};

use crate::limits;
use crate::schema::{PropertyType, RecordType, TypeName};
use crate::token::InterfaceId;

/// The custom section that holds one encoded WIT package.
pub const SECTION: &str = "bindery:wit";

/// The docs that a component carries.
#[derive(Debug, Default)]
pub struct Docs {
    packages: Vec<Resolve>,
    /// Record docs by interface id and name: a package's own section has its docs, the others repeat its types without.
    records: HashMap<(String, String), (usize, TypeId)>,
    interfaces: HashMap<String, String>,
    /// Package docs by `namespace:name@version`.
    about: HashMap<String, String>,
}

impl Docs {
    /// Reads the docs of encoded WIT packages. Those that do not decode are as good as absent.
    pub fn of(packages: &[Vec<u8>]) -> Self {
        let mut docs = Self::default();
        for section in packages {
            if let Ok(DecodedWasm::WitPackage(resolve, package)) = decode(section) {
                docs.add(resolve, package);
            }
        }
        docs
    }

    fn add(&mut self, resolve: Resolve, package: wit_parser::PackageId) {
        let index = self.packages.len();
        if let Some(package) = resolve.packages.get(package) {
            if let Some(text) = &package.docs.contents {
                self.about.insert(package.name.to_string(), text.clone());
            }
            for (name, interface) in &package.interfaces {
                let id = package.name.interface_id(name);
                let Some(interface) = resolve.interfaces.get(*interface) else {
                    continue;
                };
                if let Some(text) = &interface.docs.contents {
                    self.interfaces.insert(id.clone(), text.clone());
                }
                for (name, ty) in &interface.types {
                    self.records.insert((id.clone(), name.clone()), (index, *ty));
                }
            }
        }
        self.packages.push(resolve);
    }

    /// What a package is for.
    pub fn package(&self, id: &str) -> Option<&str> {
        self.about.get(id).map(String::as_str)
    }

    /// What an interface is for.
    pub fn interface(&self, id: &str) -> Option<&str> {
        self.interfaces.get(id).map(String::as_str)
    }

    /// Writes the docs of the record `name` of an interface into its type.
    pub fn describe(&self, interface: &str, name: &str, record: &mut RecordType) {
        if let Some((index, id)) = self.records.get(&(interface.to_string(), name.to_string())) {
            self.describe_type(*index, *id, record);
        }
    }

    fn describe_type(&self, index: usize, id: TypeId, record: &mut RecordType) {
        let (index, id) = self.documented(index, id);
        let Some(ty) = self.packages.get(index).and_then(|resolve| resolve.types.get(id)) else {
            return;
        };
        let TypeDefKind::Record(fields) = &ty.kind else { return };
        record.docs.clone_from(&ty.docs.contents);
        record.name = self.name_of(index, id);
        for property in &mut record.properties {
            let Some(field) = fields.fields.iter().find(|field| field.name == property.field) else {
                continue;
            };
            property.docs.clone_from(&field.docs.contents);
            self.describe_nested(index, field.ty, &mut property.ty);
        }
    }

    fn describe_nested(&self, index: usize, ty: Type, property: &mut PropertyType) {
        let Type::Id(id) = ty else { return };
        let Some(definition) = self.packages.get(index).and_then(|resolve| resolve.types.get(id)) else {
            return;
        };
        match (&definition.kind, property) {
            (TypeDefKind::Option(inner) | TypeDefKind::Type(inner), property) => {
                if let (TypeDefKind::Type(_), PropertyType::Record(record)) = (&definition.kind, &mut *property) {
                    self.describe_type(index, id, record);
                } else {
                    self.describe_nested(index, *inner, property);
                }
            }
            (TypeDefKind::List(inner), PropertyType::List(item)) => self.describe_nested(index, *inner, item),
            (TypeDefKind::List(inner), PropertyType::Map(item)) => {
                let pair = match inner {
                    Type::Id(id) => self.packages.get(index).and_then(|resolve| resolve.types.get(*id)),
                    _ => None,
                };
                if let Some(TypeDefKind::Tuple(pair)) = pair.map(|pair| &pair.kind)
                    && let Some(value) = pair.types.get(1)
                {
                    self.describe_nested(index, *value, item);
                }
            }
            (TypeDefKind::Record(_), PropertyType::Record(record)) => self.describe_type(index, id, record),
            _ => {}
        }
    }

    fn name_of(&self, index: usize, id: TypeId) -> Option<TypeName> {
        let resolve = self.packages.get(index)?;
        let ty = resolve.types.get(id)?;
        let wit_parser::TypeOwner::Interface(interface) = ty.owner else {
            return None;
        };
        Some(TypeName {
            interface: InterfaceId::parse(&resolve.id_of(interface)?)?,
            name: ty.name.clone()?,
        })
    }

    /// The type behind `use`, in the section of the package that it comes from, which is the one with its docs.
    fn documented(&self, index: usize, id: TypeId) -> (usize, TypeId) {
        let Some(resolve) = self.packages.get(index) else {
            return (index, id);
        };
        let mut id = id;
        while let Some(TypeDefKind::Type(Type::Id(inner))) = resolve.types.get(id).map(|ty| &ty.kind) {
            id = *inner;
        }
        let home = resolve.types.get(id).and_then(|ty| {
            let wit_parser::TypeOwner::Interface(interface) = ty.owner else {
                return None;
            };
            Some((resolve.id_of(interface)?, ty.name.clone()?))
        });
        home.and_then(|home| self.records.get(&home).copied())
            .unwrap_or((index, id))
    }
}

/// The custom sections of this name at the top of a component, not of what is nested in it; none where they are too large together.
pub(crate) fn sections(component: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::CustomSection(section)) if depth == 0 && section.name() == SECTION => {
                found.push(section.data())
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    if found.iter().map(|section| section.len()).sum::<usize>() > limits::DOCS {
        found.clear();
    }
    found
}
