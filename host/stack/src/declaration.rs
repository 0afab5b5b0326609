//! One resource of a stack file: its type, its properties and its options.

use bindery_resource::{PropertyPath, Urn};

use crate::diagnostic::{Diagnostic, Position};
use crate::expression::{Expression, ExpressionKind};
use crate::reader::{Reader, find};
use crate::yaml::{Entry, Node, NodeValue};

/// One resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDeclaration {
    /// Its name in the file.
    pub name: String,
    /// Where its name is.
    pub position: Position,
    /// Its type token.
    pub token: String,
    /// Where its type is.
    pub token_position: Position,
    /// Its inputs: a mapping.
    pub properties: Expression,
    /// How the engine treats it.
    pub options: ResourceOptions,
    /// The resources that come before it: those that it names, and those that its values refer to.
    pub dependencies: Vec<String>,
}

/// How the engine treats a resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceOptions {
    /// The resources that come before it, though it refers to none of their values.
    pub depends_on: Vec<Dependency>,
    /// It is neither deleted nor replaced.
    pub protect: bool,
    /// Properties that keep their last value, whatever is declared.
    pub ignore_changes: Vec<PropertyPath>,
    /// Where it is no longer declared, it is forgotten, and stays as it is.
    pub retain_on_delete: bool,
    /// A replacement deletes it first.
    pub delete_before_replace: bool,
    /// Properties whose change makes a replacement of an update.
    pub replace_on_changes: Vec<PropertyPath>,
    /// What exists already under this id is adopted instead of made.
    pub import: Option<String>,
    /// What it was called before.
    pub aliases: Vec<Alias>,
}

/// A resource that comes before another.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Where that is written.
    pub position: Position,
}

/// What a resource was called before.
#[derive(Debug, Clone, PartialEq)]
pub enum Alias {
    /// All of it.
    Urn(Urn),
    /// Its name then; all else was as it is.
    Name(String),
}

const RESOURCE: [&str; 3] = ["type", "properties", "options"];
const PULUMI_RESOURCE: [&str; 3] = ["get", "defaultProvider", "name"];
const OPTIONS: [&str; 8] = [
    "aliases",
    "deleteBeforeReplace",
    "dependsOn",
    "ignoreChanges",
    "import",
    "protect",
    "replaceOnChanges",
    "retainOnDelete",
];
const PULUMI_OPTIONS: [&str; 12] = [
    "additionalSecretOutputs",
    "customTimeouts",
    "deletedWith",
    "envVarMappings",
    "hideDiffs",
    "hooks",
    "parent",
    "pluginDownloadURL",
    "provider",
    "providers",
    "replaceWith",
    "version",
];

impl ResourceDeclaration {
    /// Where a property is, or what is nearest to it.
    pub fn locate(&self, path: &PropertyPath) -> Position {
        let is_written = |name: &str| match &self.properties.kind {
            ExpressionKind::Map(fields) => fields.iter().any(|field| field.key == name),
            _ => false,
        };
        match path.first() {
            Some(name) if is_written(name) => self.properties.locate(path),
            _ => self.position,
        }
    }

    /// The URN that an alias stands for.
    pub fn alias(&self, alias: &Alias, urn: &Urn) -> Urn {
        match alias {
            Alias::Urn(urn) => urn.clone(),
            Alias::Name(name) => Urn::new(urn.stack(), urn.project(), &self.token, name),
        }
    }

    /// Reads a resource. What is wrong names it.
    pub fn read(reader: &mut Reader, entry: &Entry) -> Option<Self> {
        let before = reader.diagnostics.len();
        let declaration = read(reader, entry);
        for diagnostic in reader.diagnostics.iter_mut().skip(before) {
            diagnostic.resource = Some(entry.key.clone());
        }
        declaration
    }
}

fn read(reader: &mut Reader, entry: &Entry) -> Option<ResourceDeclaration> {
    if entry.key.is_empty() {
        reader.say(entry.position, "a resource must have a name");
    }
    let NodeValue::Map(fields) = &entry.node.value else {
        reader.form(&entry.node, "a resource", "a mapping with `type` and `properties`");
        return None;
    };
    reader.known_keys(fields, &RESOURCE, &PULUMI_RESOURCE, "a resource");
    let token = match find(fields, "type") {
        Some(ty) => reader
            .plain_text(&ty.node, "`type`")
            .map(|token| (token, ty.node.position)),
        None => {
            reader.say(entry.position, "`type` is missing");
            None
        }
    };
    let mut properties = Expression::null(entry.position);
    properties.kind = ExpressionKind::Map(Vec::new());
    if let Some(found) = find(fields, "properties") {
        match &found.node.value {
            NodeValue::Map(_) => {
                properties = Expression::read(&found.node, &PropertyPath::default(), &mut reader.diagnostics);
            }
            NodeValue::Null => {}
            _ => reader.form(&found.node, "`properties`", "a mapping"),
        }
    }
    let options = find(fields, "options").map_or_else(ResourceOptions::default, |found| options(reader, &found.node));
    let (token, token_position) = token?;
    if token.starts_with("pulumi:") {
        let message = format!("`{token}` is a resource of Pulumi's own, which is not supported here");
        reader
            .diagnostics
            .push(Diagnostic::at(token_position, message).with_hint(crate::reader::USE_PULUMI));
        return None;
    }
    Some(ResourceDeclaration {
        name: entry.key.clone(),
        position: entry.position,
        token,
        token_position,
        properties,
        options,
        dependencies: Vec::new(),
    })
}

fn options(reader: &mut Reader, node: &Node) -> ResourceOptions {
    let fields = reader.mapping(node, "`options`");
    reader.known_keys(fields, &OPTIONS, &PULUMI_OPTIONS, "`options`");
    let mut options = ResourceOptions::default();
    for Entry { key, node, .. } in fields {
        let what = format!("`{key}`");
        match key.as_str() {
            "protect" => options.protect = reader.boolean(node, &what),
            "retainOnDelete" => options.retain_on_delete = reader.boolean(node, &what),
            "deleteBeforeReplace" => options.delete_before_replace = reader.boolean(node, &what),
            "ignoreChanges" => options.ignore_changes = paths(reader, node, &what),
            "replaceOnChanges" => options.replace_on_changes = paths(reader, node, &what),
            "import" => {
                options.import = reader.plain_text(node, &what);
                if options.import.as_ref().is_some_and(|id| id.trim().is_empty()) {
                    reader.say(node.position, "`import` must not be empty");
                }
            }
            "dependsOn" => {
                let items = reader.list(node);
                options.depends_on = items.iter().filter_map(|item| dependency(reader, item)).collect();
            }
            "aliases" => {
                let items = reader.list(node);
                options.aliases = items.iter().filter_map(|item| alias(reader, item)).collect();
            }
            _ => {}
        }
    }
    options
}

fn paths(reader: &mut Reader, node: &Node, what: &str) -> Vec<PropertyPath> {
    let items = reader.list(node);
    items.iter().filter_map(|item| path(reader, item, what)).collect()
}

fn path(reader: &mut Reader, node: &Node, what: &str) -> Option<PropertyPath> {
    let text = reader.plain_text(node, &format!("an entry of {what}"))?;
    if text.contains('*') {
        let message = format!("{what}: wildcards (`{text}`) are not supported here");
        let hint = "name the properties, or use Pulumi for this stack";
        reader
            .diagnostics
            .push(Diagnostic::at(node.position, message).with_hint(hint));
        return None;
    }
    let path = PropertyPath::parse(&text).filter(|path| path.first().is_some());
    if path.is_none() {
        let message = format!("{what}: `{text}` is not the path of a property");
        let hint = "a path is written as `condition.title` or `members[0]`";
        reader
            .diagnostics
            .push(Diagnostic::at(node.position, message).with_hint(hint));
    }
    path
}

/// A dependency is written as `${name}`.
fn dependency(reader: &mut Reader, node: &Node) -> Option<Dependency> {
    let text = reader.text(node, "an entry of `dependsOn`")?;
    let mut wrong = Vec::new();
    let expression = Expression::read(node, &PropertyPath::default(), &mut wrong);
    if let ExpressionKind::Reference(reference) = expression.kind
        && reference.path.is_empty()
    {
        return Some(Dependency {
            name: reference.name,
            position: node.position,
        });
    }
    let message = format!("`dependsOn` takes a resource as `${{NAME}}`, not `{text}`");
    reader.say(node.position, message);
    None
}

fn alias(reader: &mut Reader, node: &Node) -> Option<Alias> {
    if let NodeValue::Map(fields) = &node.value {
        let pulumi = ["type", "parent", "noParent", "stack", "project"];
        reader.known_keys(fields, &["name"], &pulumi, "an alias");
        let Some(name) = find(fields, "name") else {
            reader.say(node.position, "an alias says the `name` that the resource had");
            return None;
        };
        return reader.plain_text(&name.node, "`name`").map(Alias::Name);
    }
    let text = reader.plain_text(node, "an alias")?;
    let urn = Urn::parse(&text);
    if urn.is_none() {
        let message = format!("`{text}` is not a URN");
        let hint = "an alias is `urn:pulumi:STACK::PROJECT::TYPE::NAME`, or `{name: …}`";
        reader
            .diagnostics
            .push(Diagnostic::at(node.position, message).with_hint(hint));
    }
    urn.map(Alias::Urn)
}
