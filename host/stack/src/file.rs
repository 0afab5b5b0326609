//! What a stack file declares: the declarative form of Pulumi YAML, as far as it is supported here. What is not is refused
//! by name.

use bindery_resource::PropertyPath;
use indexmap::IndexMap;

use crate::config::Config;
use crate::declaration::ResourceDeclaration;
use crate::diagnostic::{Diagnostic, Position};
use crate::expression::{Expression, Field};
use crate::order;
use crate::reader::{Reader, USE_PULUMI, find};
use crate::settings::Settings;
use crate::yaml::{Entry, Node, NodeValue};

/// A stack file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackFile {
    /// The project's name.
    pub name: String,
    /// Its configuration keys, and what it sets for providers.
    pub config: Config,
    /// How the engine runs, where the command line does not say.
    pub settings: Settings,
    /// Values under a name.
    pub variables: IndexMap<String, Variable>,
    /// Its resources, in the order of the file.
    pub resources: IndexMap<String, ResourceDeclaration>,
    /// What the stack gives to others.
    pub outputs: Vec<Field>,
    /// Where the resources are, each after those that it depends on.
    pub(crate) order: Vec<usize>,
}

/// A value under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Where its name is.
    pub position: Position,
    /// Its value.
    pub value: Expression,
}

const TOP: [&str; 12] = [
    "name",
    "runtime",
    "description",
    "author",
    "website",
    "license",
    "main",
    "config",
    "variables",
    "resources",
    "outputs",
    "bindery",
];

/// What Pulumi YAML has, and this does not.
const PULUMI_TOP: [&str; 12] = [
    "backend",
    "components",
    "configuration",
    "options",
    "packages",
    "plugins",
    "pulumi",
    "refresh",
    "requiredPulumiVersion",
    "stackConfigDir",
    "sdks",
    "template",
];

impl StackFile {
    /// Reads a stack file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let document = Node::parse(text).map_err(|diagnostic| vec![diagnostic])?;
        let mut reader = Reader::default();
        let mut file = read(&mut reader, &document);
        order::resolve(&mut file, &mut reader.diagnostics);
        if reader.diagnostics.is_empty() {
            Ok(file)
        } else {
            reader.diagnostics.sort_by_key(|diagnostic| diagnostic.position);
            Err(reader.diagnostics)
        }
    }

    /// The stack that is meant where nothing else names one.
    pub fn stack(&self) -> &str {
        self.settings.stack.as_deref().unwrap_or("dev")
    }

    /// The resources, each after those that it depends on.
    pub fn in_order(&self) -> impl Iterator<Item = &ResourceDeclaration> {
        let resource = |index: &usize| self.resources.get_index(*index).map(|(_, resource)| resource);
        self.order.iter().filter_map(resource)
    }

    /// Whether a reference can name this.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.config.keys.contains_key(name) || self.variables.contains_key(name) || self.resources.contains_key(name)
    }

    /// Everything that a reference can name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let config = self.config.keys.keys();
        config
            .chain(self.variables.keys())
            .chain(self.resources.keys())
            .map(String::as_str)
    }
}

fn read(reader: &mut Reader, document: &Node) -> StackFile {
    let NodeValue::Map(top) = &document.value else {
        reader.form(
            document,
            "a stack file",
            "a mapping with `name`, `runtime` and `resources`",
        );
        return StackFile::default();
    };
    reader.known_keys(top, &TOP, &PULUMI_TOP, "the stack file");
    runtime(reader, document, find(top, "runtime"));
    let name = match find(top, "name") {
        Some(entry) => project_name(reader, entry),
        None => {
            reader.say(document.position, "`name` is missing: the project's name");
            None
        }
    };
    let entries = |reader: &mut Reader, key: &str| match find(top, key) {
        Some(entry) => reader.mapping(&entry.node, &format!("`{key}`")).to_vec(),
        None => Vec::new(),
    };
    let config = entries(reader, "config");
    let config = Config::read(reader, name.as_deref(), &config);
    let settings = entries(reader, "bindery");
    let settings = Settings::read(reader, &settings);
    let variables = entries(reader, "variables").into_iter().map(|entry| {
        let value = Expression::read(&entry.node, &PropertyPath::default(), &mut reader.diagnostics);
        let position = entry.position;
        (entry.key, Variable { position, value })
    });
    let variables = variables.collect();
    let mut resources = IndexMap::new();
    for entry in entries(reader, "resources") {
        if let Some(resource) = ResourceDeclaration::read(reader, &entry) {
            resources.insert(entry.key, resource);
        }
    }
    let outputs = entries(reader, "outputs").into_iter().map(|entry| Field {
        value: Expression::read(&entry.node, &PropertyPath::default(), &mut reader.diagnostics),
        key: entry.key,
        position: entry.position,
    });
    StackFile {
        outputs: outputs.collect(),
        name: name.unwrap_or_default(),
        config,
        settings,
        variables,
        resources,
        order: Vec::new(),
    }
}

fn runtime(reader: &mut Reader, document: &Node, entry: Option<&Entry>) {
    let Some(Entry { node, .. }) = entry else {
        reader.say(document.position, "`runtime: yaml` is missing");
        return;
    };
    // The form with options.
    let name = match &node.value {
        NodeValue::Map(fields) => {
            reader.known_keys(fields, &["name"], &["options"], "`runtime`");
            find(fields, "name").map_or(node, |entry| &entry.node)
        }
        _ => node,
    };
    if name.value != NodeValue::String("yaml".to_string()) {
        let message = "`runtime` must be `yaml`: other languages run under Pulumi";
        let diagnostic = Diagnostic::at(name.position, message).with_hint(USE_PULUMI);
        reader.diagnostics.push(diagnostic);
    }
}

/// What is part of URNs and of file names, as a project's and a stack's name.
pub fn is_name(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !text.starts_with('.')
}

fn project_name(reader: &mut Reader, entry: &Entry) -> Option<String> {
    let name = reader.text(&entry.node, "`name`")?;
    if is_name(&name) {
        return Some(name);
    }
    reader.say(
        entry.node.position,
        "`name` must be 1 to 100 letters, digits, `-`, `_` and `.`, and not start with `.`",
    );
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::Alias;

    fn wrong(text: &str) -> Vec<String> {
        StackFile::parse(text)
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const HEAD: &str = "name: grants\nruntime: yaml\nresources:\n";

    #[test]
    fn a_stack_file_declares_resources_with_their_places() {
        let text = format!("{HEAD}  b:\n    type: t\n    properties: {{x: [1]}}\n  a:\n    type: t\n");
        let file = StackFile::parse(&text).unwrap();
        assert_eq!(file.name, "grants");
        let path = PropertyPath::parse("x[0]").unwrap();
        assert_eq!(file.resources["b"].locate(&path).to_string(), "6:22");
    }

    #[test]
    fn every_option_is_read() {
        let text = format!(
            "{HEAD}  a:\n    type: t\n    options:\n      protect: true\n      retainOnDelete: true\n      \
             deleteBeforeReplace: true\n      ignoreChanges: [x, 'y.z[0]']\n      replaceOnChanges: x\n      \
             import: the id\n      dependsOn: '${{b}}'\n      aliases: [{{name: old}}, 'urn:pulumi:s::p::t::n']\n  b:\n    type: t\n"
        );
        let file = StackFile::parse(&text).unwrap();
        let options = &file.resources["a"].options;
        assert!(options.protect && options.retain_on_delete && options.delete_before_replace);
        assert_eq!(options.ignore_changes[1].to_string(), "y.z[0]");
        assert_eq!(options.replace_on_changes[0].to_string(), "x");
        assert_eq!(options.import.as_deref(), Some("the id"));
        assert_eq!(options.depends_on[0].name, "b");
        assert!(matches!(&options.aliases[0], Alias::Name(name) if name == "old"));
        assert!(matches!(&options.aliases[1], Alias::Urn(urn) if urn.name() == "n"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_all_at_once() {
        assert_eq!(
            wrong("nmae: x\nruntime: nodejs\nresources:\n  a:\n    tpye: t\n"),
            [
                "1:1: the stack file has no `nmae`",
                "1:1: `name` is missing: the project's name",
                "2:10: `runtime` must be `yaml`: other languages run under Pulumi",
                "4:3: resource `a`: `type` is missing",
                "5:5: resource `a`: a resource has no `tpye`",
            ]
        );
        assert!(wrong("- a\n")[0].contains("not a list"));
        assert!(wrong(&format!("{HEAD}  - a\n"))[0].contains("not a list"));
        assert!(wrong("name: ../x\nruntime: yaml\n")[0].contains("letters"));
    }

    #[test]
    fn what_only_pulumi_has_is_refused_by_name() {
        assert!(wrong("name: x\nruntime: yaml\npackages: {}\n")[0].contains("`packages` is not supported here"));
        let option = |option: &str| wrong(&format!("{HEAD}  a:\n    type: t\n    options: {{{option}}}\n"))[0].clone();
        assert!(option("parent: '${b}'").contains("`parent` is not supported here"));
        assert!(option("ignoreChanges: ['*']").contains("wildcards"));
        assert!(option("ignoreChanges: ['a..b']").contains("not the path of a property"));
        assert!(option("aliases: [{name: a, parent: x}]").contains("`parent` is not supported here"));
        assert!(option("protect: yes please").contains("`true` or `false`"));
        assert!(option("dependsOn: [b]").contains("`${NAME}`"));
        let function = wrong(&format!(
            "{HEAD}  a:\n    type: t\n    properties: {{m: {{fn::secret: x}}}}\n"
        ));
        assert_eq!(
            function,
            ["6:22: resource `a`, property `m`: functions (`fn::secret`) are not supported here"]
        );
        assert!(wrong(&format!("{HEAD}  a:\n    type: pulumi:providers:gcp\n"))[0].contains("Pulumi's own"));
    }
}
