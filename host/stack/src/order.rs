//! What comes before what: each resource after those that its options and values name, through variables too.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use bindery_resource::nearest;

use crate::declaration::ResourceDeclaration;
use crate::diagnostic::{Diagnostic, Position};
use crate::expression::Expression;
use crate::file::StackFile;

/// How many variables may refer to each other in a row. More than any person writes, and few enough to follow.
const LONGEST_CHAIN: usize = 100;

/// Finds what every reference names, and gives each resource its dependencies and the file the order of its resources.
pub fn resolve(file: &mut StackFile, diagnostics: &mut Vec<Diagnostic>) {
    let before = diagnostics.len();
    names_are_unique(file, diagnostics);
    references_lead_somewhere(file, diagnostics);
    if diagnostics.len() > before {
        return;
    }
    let graph = Graph::of(file);
    match graph.order() {
        Ok(order) => {
            let (dependencies, depths) = graph.dependencies(&order);
            let names: Vec<String> = file.resources.keys().cloned().collect();
            let name = |index: &usize| names.get(*index).cloned();
            for (resource, found) in file.resources.values_mut().zip(dependencies) {
                resource.dependencies = found.iter().filter_map(name).collect();
            }
            file.order = order.into_iter().filter(|node| *node < names.len()).collect();
            for ((key, variable), depth) in file.variables.iter().zip(depths) {
                if depth == LONGEST_CHAIN {
                    let message =
                        format!("the variable `{key}` is the end of {LONGEST_CHAIN} that refer to each other");
                    diagnostics.push(Diagnostic::at(variable.position, message).with_hint("write some of them out"));
                }
            }
        }
        Err(blocked) => {
            let circle = graph.circle(&blocked);
            let names: Vec<&str> = circle
                .iter()
                .filter_map(|node| graph.names.get(*node).copied())
                .collect();
            let position = circle.first().and_then(|node| graph.positions.get(*node).copied());
            let message = format!("these refer to each other in a circle: {}", names.join(" → "));
            diagnostics.extend(position.map(|position| Diagnostic::at(position, message)));
        }
    }
}

fn names_are_unique(file: &StackFile, diagnostics: &mut Vec<Diagnostic>) {
    let mut taken: HashMap<&str, &str> = HashMap::from([("pulumi", "the stack's own names")]);
    let config = file
        .config
        .keys
        .iter()
        .map(|(name, key)| (name, key.position, "a configuration key"));
    let variables = file
        .variables
        .iter()
        .map(|(name, variable)| (name, variable.position, "a variable"));
    let resources = file
        .resources
        .iter()
        .map(|(name, resource)| (name, resource.position, "a resource"));
    for (name, position, what) in config.chain(variables).chain(resources) {
        if let Some(other) = taken.insert(name, what) {
            let message = format!("`{name}` is {what}, and {other} too: a reference could mean either");
            diagnostics.push(Diagnostic::at(position, message).with_hint("give one of them another name"));
        }
    }
}

fn references_lead_somewhere(file: &StackFile, diagnostics: &mut Vec<Diagnostic>) {
    for variable in file.variables.values() {
        each_leads_somewhere(file, &variable.value, None, diagnostics);
    }
    for resource in file.resources.values() {
        each_leads_somewhere(file, &resource.properties, Some(resource), diagnostics);
        for dependency in &resource.options.depends_on {
            if !file.resources.contains_key(&dependency.name) {
                let message = format!("`dependsOn`: no resource is named `{}`", dependency.name);
                let diagnostic = Diagnostic::at(dependency.position, message).of_resource(&resource.name);
                diagnostics.push(
                    match nearest(&dependency.name, file.resources.keys().map(String::as_str)) {
                        Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                        None => diagnostic,
                    },
                );
            }
        }
    }
    for output in &file.outputs {
        each_leads_somewhere(file, &output.value, None, diagnostics);
    }
}

fn each_leads_somewhere(
    file: &StackFile,
    expression: &Expression,
    of: Option<&ResourceDeclaration>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for (reference, position) in expression.references() {
        let name = reference.name.as_str();
        if name == "pulumi" || file.has(name) {
            continue;
        }
        let diagnostic = Diagnostic::at(position, format!("`{reference}`: nothing is named `{name}`"));
        let diagnostic = match nearest(name, file.names().chain(["pulumi"])) {
            Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
            None => diagnostic.with_hint("a reference names a key of `config`, a variable or a resource"),
        };
        diagnostics.push(match of {
            Some(resource) => diagnostic.of_resource(&resource.name),
            None => diagnostic,
        });
    }
}

/// Resources first, variables after; the edges go to what is needed.
struct Graph<'f> {
    names: Vec<&'f str>,
    positions: Vec<Position>,
    needs: Vec<Vec<usize>>,
    resources: usize,
}

impl<'f> Graph<'f> {
    fn of(file: &'f StackFile) -> Self {
        let resources = file.resources.len();
        let node = |name: &str| {
            let resource = file.resources.get_index_of(name);
            resource.or_else(|| Some(resources + file.variables.get_index_of(name)?))
        };
        let needed = |expression: &Expression| -> Vec<usize> {
            expression
                .references()
                .iter()
                .filter_map(|(reference, _)| node(&reference.name))
                .collect()
        };
        let of_resource = |resource: &ResourceDeclaration| {
            let mut needs: Vec<usize> = resource
                .options
                .depends_on
                .iter()
                .filter_map(|dependency| node(&dependency.name))
                .collect();
            needs.extend(needed(&resource.properties));
            needs
        };
        let variables = file.variables.values();
        Self {
            names: file
                .resources
                .keys()
                .chain(file.variables.keys())
                .map(String::as_str)
                .collect(),
            positions: file
                .resources
                .values()
                .map(|resource| resource.position)
                .chain(variables.clone().map(|variable| variable.position))
                .collect(),
            needs: file
                .resources
                .values()
                .map(of_resource)
                .chain(variables.map(|variable| needed(&variable.value)))
                .map(|mut needs| {
                    needs.sort_unstable();
                    needs.dedup();
                    needs
                })
                .collect(),
            resources,
        }
    }

    /// Every node after those that it needs, otherwise in the order of the file.
    fn order(&self) -> Result<Vec<usize>, Vec<bool>> {
        let mut missing: Vec<usize> = self.needs.iter().map(Vec::len).collect();
        let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); self.needs.len()];
        for (node, needs) in self.needs.iter().enumerate() {
            for need in needs {
                if let Some(list) = needed_by.get_mut(*need) {
                    list.push(node);
                }
            }
        }
        // A variable holds nothing up: what it stands for is already there.
        let turn = |node: usize| Reverse((node < self.resources, node));
        let free = missing.iter().enumerate().filter(|(_, missing)| **missing == 0);
        let mut ready: BinaryHeap<Reverse<(bool, usize)>> = free.map(|(node, _)| turn(node)).collect();
        let mut order = Vec::with_capacity(missing.len());
        while let Some(Reverse((_, node))) = ready.pop() {
            order.push(node);
            for next in needed_by.get(node).into_iter().flatten() {
                if let Some(count) = missing.get_mut(*next) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(turn(*next));
                    }
                }
            }
        }
        if order.len() == missing.len() {
            Ok(order)
        } else {
            Err(missing.iter().map(|missing| *missing > 0).collect())
        }
    }

    /// For each resource those that it needs, through variables too; for each variable how long the chain is that it ends.
    fn dependencies(&self, order: &[usize]) -> (Vec<BTreeSet<usize>>, Vec<usize>) {
        let mut found: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.needs.len()];
        let mut depths = vec![0_usize; self.needs.len()];
        for node in order {
            let mut resources = BTreeSet::new();
            let mut depth = 0;
            for need in self.needs.get(*node).into_iter().flatten() {
                if *need < self.resources {
                    resources.insert(*need);
                } else {
                    resources.extend(found.get(*need).into_iter().flatten());
                    depth = depth.max(depths.get(*need).copied().unwrap_or_default());
                }
            }
            if let (Some(found), Some(of)) = (found.get_mut(*node), depths.get_mut(*node)) {
                *found = resources;
                *of = depth + 1;
            }
        }
        found.truncate(self.resources);
        (found, depths.split_off(self.resources.min(depths.len())))
    }

    /// Each blocked node needs another blocked one: following them comes back to one that was seen.
    fn circle(&self, blocked: &[bool]) -> Vec<usize> {
        let is_blocked = |node: &usize| blocked.get(*node).copied().unwrap_or_default();
        let mut seen: Vec<usize> = Vec::new();
        let mut at: HashMap<usize, usize> = HashMap::new();
        let mut here = (0..blocked.len()).find(is_blocked);
        while let Some(node) = here {
            if let Some(start) = at.get(&node) {
                seen.drain(..*start);
                seen.push(node);
                return seen;
            }
            at.insert(node, seen.len());
            seen.push(node);
            here = self
                .needs
                .get(node)
                .into_iter()
                .flatten()
                .copied()
                .find(|need| is_blocked(need));
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StackFile, Vec<String>> {
        let text = format!("name: p\nruntime: yaml\n{text}");
        StackFile::parse(&text).map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn resources_come_after_what_they_name_and_refer_to_otherwise_in_the_order_of_the_file() {
        let file = read(
            "variables: {v: '${c.id}', w: '${v}!'}\nresources:\n  a: {type: t, properties: {x: '${w}'}}\n  \
             b: {type: t}\n  c: {type: t, options: {dependsOn: '${d}'}}\n  d: {type: t}\n",
        )
        .unwrap();
        let order: Vec<&str> = file.in_order().map(|resource| resource.name.as_str()).collect();
        assert_eq!(order, ["b", "d", "c", "a"]);
        assert_eq!(file.resources["a"].dependencies, ["c"]);
        assert_eq!(file.resources["c"].dependencies, ["d"]);
    }

    #[test]
    fn circles_are_named_through_variables_too() {
        let wrong =
            read("variables: {v: '${a.id}'}\nresources:\n  a: {type: t, properties: {x: ['${v}']}}\n").unwrap_err();
        assert_eq!(wrong, ["5:3: these refer to each other in a circle: a → v → a"]);
        let wrong = read("variables: {v: '${v}'}\n").unwrap_err();
        assert!(wrong[0].contains("v → v"), "{wrong:?}");
        let wrong = read(
            "resources: {a: {type: t, options: {dependsOn: ['${b}']}}, b: {type: t, options: {dependsOn: ['${a}']}}}",
        )
        .unwrap_err();
        assert!(wrong[0].contains("a → b → a"), "{wrong:?}");
    }

    #[test]
    fn names_that_lead_nowhere_or_to_two_things_are_refused() {
        for (text, expected) in [
            (
                "resources: {a: {type: t, properties: {x: '${bb}'}}, b: {type: t}}",
                "resource `a`: `${bb}`: nothing is named `bb`",
            ),
            ("outputs: {o: '${x.y}'}", "`${x.y}`: nothing is named `x`"),
            (
                "variables: {a: 1}\nresources: {a: {type: t}}",
                "`a` is a resource, and a variable too",
            ),
            (
                "config: {a: 1}\nvariables: {a: 1}",
                "`a` is a variable, and a configuration key too",
            ),
            ("variables: {pulumi: 1}", "the stack's own names"),
            (
                "resources: {a: {type: t, options: {dependsOn: '${bb}'}}, bbb: {type: t}}",
                "no resource is named `bb`",
            ),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong[0].contains(expected), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn a_chain_of_variables_has_an_end() {
        let mut text = "variables:\n  v0: x\n".to_string();
        for n in 1..150 {
            text += &format!("  v{n}: '${{v{}}}'\n", n - 1);
        }
        assert!(read(&text).unwrap_err()[0].contains("refer to each other"));
    }
}
