//! What a stack file declares: the declarative form of Pulumi YAML, as far as it is supported here. What is not is refused
//! by name.

use bindery_resource::{PropertyMap, PropertyPath, nearest};

use crate::diagnostic::{Diagnostic, Position};
use crate::yaml::{Entry, Node, NodeValue, to_properties};

/// A stack file.
#[derive(Debug, Clone, PartialEq)]
pub struct StackFile {
    /// The project's name.
    pub name: String,
    /// Its resources, in the order of the file.
    pub resources: Vec<ResourceDeclaration>,
}

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
    /// Its inputs, with their places.
    properties: Node,
    /// The resources that come before it.
    pub depends_on: Vec<Dependency>,
}

/// A resource that comes before another.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Where that is written.
    pub position: Position,
}

impl ResourceDeclaration {
    /// Its inputs.
    pub fn inputs(&self) -> PropertyMap {
        match &self.properties.value {
            NodeValue::Map(entries) => to_properties(entries),
            _ => PropertyMap::new(),
        }
    }

    /// Where a property is, or what is nearest to it.
    pub fn locate(&self, path: &PropertyPath) -> Position {
        match path.first() {
            Some(_) => self.properties.locate(path),
            None => self.position,
        }
    }
}

const TOP: [&str; 5] = ["name", "runtime", "description", "resources", "main"];
const RESOURCE: [&str; 3] = ["type", "properties", "options"];

/// What Pulumi YAML has, and this does not.
const PULUMI_TOP: [&str; 6] = ["config", "variables", "outputs", "pulumi", "packages", "template"];
const PULUMI_RESOURCE: [&str; 3] = ["get", "defaultProvider", "name"];

impl StackFile {
    /// Reads a stack file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let document = Node::parse(text).map_err(|diagnostic| vec![diagnostic])?;
        let mut reader = Reader::default();
        let file = reader.file(&document);
        match file {
            Some(file) if reader.diagnostics.is_empty() => Ok(file),
            _ => Err(reader.diagnostics),
        }
    }
}

#[derive(Default)]
struct Reader {
    diagnostics: Vec<Diagnostic>,
}

impl Reader {
    fn say(&mut self, position: Position, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::at(position, message));
    }

    fn file(&mut self, document: &Node) -> Option<StackFile> {
        let NodeValue::Map(top) = &document.value else {
            let message = format!(
                "a stack file is a mapping with `name`, `runtime` and `resources`, not {}",
                document.type_name()
            );
            self.say(document.position, message);
            return None;
        };
        self.known_keys(top, &TOP, &PULUMI_TOP, "the stack file");
        if let Some(runtime) = find(top, "runtime")
            && !is_yaml_runtime(&runtime.node)
        {
            self.say(
                runtime.node.position,
                "`runtime` must be `yaml`: other languages run under Pulumi",
            );
        }
        if find(top, "runtime").is_none() {
            self.say(document.position, "`runtime: yaml` is missing");
        }
        let name = match find(top, "name") {
            Some(entry) => self.project_name(entry),
            None => {
                self.say(document.position, "`name` is missing: the project's name");
                None
            }
        };
        let resources = find(top, "resources").map_or_else(Vec::new, |entry| self.resources(&entry.node));
        self.dependencies(&resources);
        Some(StackFile { name: name?, resources })
    }

    fn project_name(&mut self, entry: &Entry) -> Option<String> {
        let name = self.text(&entry.node, "`name`")?;
        // It becomes part of URNs and of file names.
        let is_name = (1..=100).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && !name.starts_with('.');
        if is_name {
            return Some(name);
        }
        self.say(
            entry.node.position,
            "`name` must be 1 to 100 letters, digits, `-`, `_` and `.`, and not start with `.`",
        );
        None
    }

    fn resources(&mut self, node: &Node) -> Vec<ResourceDeclaration> {
        match &node.value {
            NodeValue::Map(entries) => entries.iter().filter_map(|entry| self.resource(entry)).collect(),
            NodeValue::Null => Vec::new(),
            _ => {
                self.say(
                    node.position,
                    format!(
                        "`resources` must be a mapping from names to resources, not {}",
                        node.type_name()
                    ),
                );
                Vec::new()
            }
        }
    }

    fn resource(&mut self, entry: &Entry) -> Option<ResourceDeclaration> {
        let before = self.diagnostics.len();
        let resource = self.resource_fields(entry);
        for diagnostic in self.diagnostics.iter_mut().skip(before) {
            diagnostic.resource = Some(entry.key.clone());
        }
        resource
    }

    fn resource_fields(&mut self, entry: &Entry) -> Option<ResourceDeclaration> {
        if entry.key.is_empty() {
            self.say(entry.position, "a resource must have a name");
        }
        let NodeValue::Map(fields) = &entry.node.value else {
            self.say(
                entry.node.position,
                format!(
                    "a resource is a mapping with `type` and `properties`, not {}",
                    entry.node.type_name()
                ),
            );
            return None;
        };
        self.known_keys(fields, &RESOURCE, &PULUMI_RESOURCE, "a resource");
        let token = match find(fields, "type") {
            Some(ty) => self.text(&ty.node, "`type`").map(|token| (token, ty.node.position)),
            None => {
                self.say(entry.position, "`type` is missing");
                None
            }
        };
        let properties = match find(fields, "properties") {
            Some(properties) => properties.node.clone(),
            None => Node {
                position: entry.position,
                value: NodeValue::Null,
            },
        };
        if !matches!(properties.value, NodeValue::Map(_) | NodeValue::Null) {
            self.say(
                properties.position,
                format!("`properties` must be a mapping, not {}", properties.type_name()),
            );
        }
        self.no_expressions(&properties, &PropertyPath::default());
        let depends_on = find(fields, "options").map_or_else(Vec::new, |options| self.options(&options.node));
        let (token, token_position) = token?;
        Some(ResourceDeclaration {
            name: entry.key.clone(),
            position: entry.position,
            token,
            token_position,
            properties,
            depends_on,
        })
    }

    /// References and functions are Pulumi's; taken as plain text they would grant something else than was meant.
    fn no_expressions(&mut self, node: &Node, path: &PropertyPath) {
        match &node.value {
            NodeValue::String(text) if text.contains("${") => {
                self.diagnostics.push(Diagnostic {
                    path: Some(path.clone()),
                    ..Diagnostic::at(
                        node.position,
                        format!("`{text}`: references (`${{…}}`) are not supported here"),
                    )
                    .with_hint("write the value itself, or use Pulumi for this stack")
                });
            }
            NodeValue::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.no_expressions(item, &path.index(index));
                }
            }
            NodeValue::Map(entries) => {
                for entry in entries {
                    if entry.key.starts_with("fn::") {
                        let message = format!("functions (`{}`) are not supported here", entry.key);
                        let hint = "write the value itself, or use Pulumi for this stack";
                        self.diagnostics
                            .push(Diagnostic::at(entry.position, message).with_hint(hint));
                    }
                    self.no_expressions(&entry.node, &path.key(&entry.key));
                }
            }
            _ => {}
        }
    }

    fn options(&mut self, node: &Node) -> Vec<Dependency> {
        if node.value == NodeValue::Null {
            return Vec::new();
        }
        let NodeValue::Map(options) = &node.value else {
            self.say(
                node.position,
                format!("`options` must be a mapping, not {}", node.type_name()),
            );
            return Vec::new();
        };
        const PULUMI: [&str; 14] = [
            "additionalSecretOutputs",
            "aliases",
            "customTimeouts",
            "deleteBeforeReplace",
            "deletedWith",
            "ignoreChanges",
            "import",
            "parent",
            "protect",
            "provider",
            "providers",
            "replaceOnChanges",
            "retainOnDelete",
            "version",
        ];
        self.known_keys(options, &["dependsOn"], &PULUMI, "`options`");
        let nodes = match find(options, "dependsOn").map(|entry| &entry.node) {
            None => return Vec::new(),
            Some(Node {
                value: NodeValue::List(items),
                ..
            }) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        nodes.iter().filter_map(|node| self.dependency(node)).collect()
    }

    /// A dependency is written as `${name}`.
    fn dependency(&mut self, node: &Node) -> Option<Dependency> {
        let text = self.text(node, "an entry of `dependsOn`")?;
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        if name.is_none() {
            self.say(
                node.position,
                format!("`dependsOn` takes a resource as `${{NAME}}`, not `{text}`"),
            );
        }
        Some(Dependency {
            name: name?.trim().to_string(),
            position: node.position,
        })
    }

    /// Every dependency is a resource of the file, and none comes back to where it started.
    fn dependencies(&mut self, resources: &[ResourceDeclaration]) {
        let before = self.diagnostics.len();
        for resource in resources {
            for dependency in &resource.depends_on {
                if !resources.iter().any(|other| other.name == dependency.name) {
                    let message = format!("`dependsOn`: no resource is named `{}`", dependency.name);
                    let diagnostic = Diagnostic::at(dependency.position, message).of_resource(&resource.name);
                    let names = resources.iter().map(|resource| resource.name.as_str());
                    self.diagnostics.push(match nearest(&dependency.name, names) {
                        Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                        None => diagnostic,
                    });
                }
            }
        }
        if self.diagnostics.len() == before
            && let Err(cycle) = in_order(resources)
        {
            let position = resources
                .iter()
                .find(|resource| cycle.first() == Some(&resource.name.as_str()));
            let message = format!("`dependsOn` goes in a circle: {}", cycle.join(" → "));
            self.diagnostics
                .extend(position.map(|resource| Diagnostic::at(resource.position, message)));
        }
    }

    fn known_keys(&mut self, entries: &[Entry], known: &[&str], pulumi: &[&str], what: &str) {
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let diagnostic = if pulumi.contains(&entry.key.as_str()) {
                Diagnostic::at(entry.position, format!("`{}` is not supported here", entry.key))
                    .with_hint("use Pulumi for this stack: the same provider serves it")
            } else {
                let diagnostic = Diagnostic::at(entry.position, format!("{what} has no `{}`", entry.key));
                match nearest(&entry.key, known.iter().copied()) {
                    Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                    None => diagnostic,
                }
            };
            self.diagnostics.push(diagnostic);
        }
    }

    fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        match &node.value {
            NodeValue::String(text) => Some(text.clone()),
            _ => {
                self.say(
                    node.position,
                    format!("{what} must be a string, not {}", node.type_name()),
                );
                None
            }
        }
    }
}

fn find<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Entry> {
    entries.iter().find(|entry| entry.key == key)
}

/// `runtime: yaml`, or the form with options.
fn is_yaml_runtime(node: &Node) -> bool {
    match &node.value {
        NodeValue::String(text) => text == "yaml",
        NodeValue::Map(entries) => find(entries, "name").is_some_and(|entry| is_yaml_runtime(&entry.node)),
        _ => false,
    }
}

/// The resources with each after those that it depends on, otherwise in the order of the file.
///
/// # Errors
/// The names along a circle, the first of them again at its end.
pub fn in_order(resources: &[ResourceDeclaration]) -> Result<Vec<&ResourceDeclaration>, Vec<&str>> {
    let mut order: Vec<&ResourceDeclaration> = Vec::new();
    let mut waiting: Vec<&ResourceDeclaration> = resources.iter().collect();
    let mut placed = std::collections::HashSet::new();
    while !waiting.is_empty() {
        let (ready, blocked): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|resource| {
            resource
                .depends_on
                .iter()
                .all(|dependency| placed.contains(dependency.name.as_str()))
        });
        if ready.is_empty() {
            return Err(circle(&blocked));
        }
        placed.extend(ready.iter().map(|resource| resource.name.as_str()));
        order.extend(ready);
        waiting = blocked;
    }
    Ok(order)
}

/// Each blocked resource waits for another blocked one: following them comes back to a name that was seen.
fn circle<'r>(blocked: &[&'r ResourceDeclaration]) -> Vec<&'r str> {
    let mut seen: Vec<&str> = Vec::new();
    let mut here = blocked.first().copied();
    while let Some(resource) = here {
        if let Some(start) = seen.iter().position(|name| *name == resource.name) {
            seen.drain(..start);
            seen.push(&resource.name);
            return seen;
        }
        seen.push(&resource.name);
        here = resource
            .depends_on
            .iter()
            .find_map(|dependency| blocked.iter().find(|other| other.name == dependency.name).copied());
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        StackFile::parse(text)
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const HEAD: &str = "name: grants\nruntime: yaml\nresources:\n";

    #[test]
    fn a_stack_file_declares_resources_in_order() {
        let text = format!(
            "{HEAD}  b:\n    type: t\n    properties: {{x: [1]}}\n    options: {{dependsOn: [\"${{a}}\"]}}\n  a:\n    type: t\n"
        );
        let file = StackFile::parse(&text).unwrap();
        assert_eq!(file.name, "grants");
        assert_eq!(
            file.resources[0]
                .locate(&PropertyPath::parse("x[0]").unwrap())
                .to_string(),
            "6:22"
        );
        let order: Vec<&str> = in_order(&file.resources)
            .unwrap()
            .iter()
            .map(|resource| resource.name.as_str())
            .collect();
        assert_eq!(order, ["a", "b"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_all_at_once() {
        assert_eq!(
            wrong("nmae: x\nruntime: nodejs\nresources:\n  a:\n    tpye: t\n"),
            [
                "1:1: the stack file has no `nmae`",
                "2:10: `runtime` must be `yaml`: other languages run under Pulumi",
                "1:1: `name` is missing: the project's name",
                "5:5: resource `a`: a resource has no `tpye`",
                "4:3: resource `a`: `type` is missing",
            ]
        );
        assert!(wrong("- a\n")[0].contains("not a list"));
        assert!(wrong(&format!("{HEAD}  - a\n"))[0].contains("not a list"));
        assert!(wrong("name: ../x\nruntime: yaml\n")[0].contains("letters"));
    }

    #[test]
    fn what_only_pulumi_has_is_refused_by_name() {
        assert!(wrong("name: x\nruntime: yaml\nvariables: {}\n")[0].contains("`variables` is not supported here"));
        assert!(wrong(&format!("{HEAD}  a:\n    type: t\n    options: {{protect: true}}\n"))[0].contains("`protect`"));
        let text = format!("{HEAD}  a:\n    type: t\n    properties: {{m: ['x${{b.id}}']}}\n");
        assert_eq!(
            wrong(&text),
            ["6:22: resource `a`, property `m[0]`: `x${b.id}`: references (`${…}`) are not supported here"]
        );
        assert!(
            wrong(&format!(
                "{HEAD}  a:\n    type: t\n    properties: {{m: {{fn::secret: x}}}}\n"
            ))[0]
                .contains("`fn::secret`")
        );
    }

    #[test]
    fn a_circle_is_named() {
        let text = format!(
            "{HEAD}  a:\n    type: t\n    options: {{dependsOn: ['${{b}}']}}\n  b:\n    type: t\n    options: {{dependsOn: '${{a}}'}}\n"
        );
        assert!(wrong(&text)[0].contains("a → b → a"), "{:?}", wrong(&text));
        let text = format!("{HEAD}  a:\n    type: t\n    options: {{dependsOn: ['${{c}}']}}\n");
        assert!(wrong(&text)[0].contains("no resource is named `c`"));
        let text = format!("{HEAD}  a:\n    type: t\n    options: {{dependsOn: [b]}}\n");
        assert!(wrong(&text)[0].contains("`${NAME}`"));
    }
}
