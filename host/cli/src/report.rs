//! What a command tells: a person as it happens, or a program in one document at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bindery_resource::{PropertyMap, Urn};
use bindery_sandbox::Event;
use bindery_stack::{Diagnostic, Plan, ResourceState, Step};
use serde_json::Value as Json;

use crate::args::{Color, Output};
use crate::display::Display;
use crate::excerpt::{self, Source};
use crate::failure::{Ending, Failure};
use crate::json::Document;
use crate::show::{self, Detail};
use crate::style::{FAINT, HEADING, HINT, WARNING};
use bindery_stack::json::{Message, Resource, action};

/// How wide text is where no terminal says it.
const WIDTH: u16 = 120;

/// How many errors a person is shown of a file in which everything is wrong.
const SHOWN_ERRORS: usize = 20;

/// Who listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listener {
    Person,
    /// A person who wants to hear of what is wrong only.
    QuietPerson,
    Program,
}

/// Tells of operations as they begin and end, and counts them.
#[derive(Debug, Clone)]
pub struct Report(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    listener: Listener,
    started: Instant,
    width: usize,
    display: Display,
    told: Mutex<Told>,
}

#[derive(Debug)]
struct Told {
    document: Document,
    source: Option<Source>,
    counts: BTreeMap<&'static str, usize>,
    /// Where the resources are in the document, by URN and whether they are removed.
    places: BTreeMap<(String, bool), usize>,
    begun: BTreeMap<(Urn, bool), Instant>,
    /// Why the answer did not reach its reader.
    unwritten: Option<io::Error>,
    /// The document was printed.
    is_over: bool,
}

/// Prints a line. Nobody who reads it any more is no reason to stop in the midst of a run.
fn out(line: &str) -> io::Result<()> {
    let mut out = anstream::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}

fn err(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

impl Report {
    /// A report of a command that begins.
    pub fn new(command: &'static str, output: &Output) -> Self {
        let choice = match output.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        let listener = match output {
            Output { json: true, .. } => Listener::Program,
            Output { quiet: true, .. } => Listener::QuietPerson,
            _ => Listener::Person,
        };
        let columns = terminal_size::terminal_size_of(std::io::stderr()).map_or(WIDTH, |(width, _)| width.0);
        Self(Arc::new(Inner {
            listener,
            started: Instant::now(),
            width: columns.into(),
            display: Display::new(listener != Listener::Person),
            told: Mutex::new(Told {
                document: Document::new(command),
                source: None,
                counts: BTreeMap::new(),
                places: BTreeMap::new(),
                begun: BTreeMap::new(),
                unwritten: None,
                is_over: false,
            }),
        }))
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a person is there who can be asked.
    pub fn can_ask(&self) -> bool {
        self.0.listener == Listener::Person
    }

    /// The stack file that is read.
    pub fn reads(&self, source: Source) {
        self.told().source = Some(source);
    }

    /// The stack that is worked on.
    pub fn about(&self, project: &str, stack: &str) {
        let document = &mut self.told().document;
        document.project = Some(project.to_string());
        document.stack = Some(stack.to_string());
    }

    /// What is begun with the stack.
    pub fn heading(&self, what: &str) {
        let name = {
            let document = &self.told().document;
            format!(
                "{}/{}",
                document.project.as_deref().unwrap_or_default(),
                document.stack.as_deref().unwrap_or_default()
            )
        };
        self.line(format!("{HEADING}{what} {name}{HEADING:#}"));
    }

    /// A line for a person.
    pub fn line(&self, line: impl AsRef<str>) {
        if self.0.listener == Listener::Person {
            // That nobody reads it is no reason to stop.
            let _ = self.0.display.around(|| out(line.as_ref()));
        }
    }

    /// What the command was asked for: text for a person, however quiet, and a field of the document for a program.
    pub fn answer(&self, text: &str, field: &'static str, value: Json) {
        match self.0.listener {
            Listener::Program => {
                self.told().document.more.insert(field.to_string(), value);
            }
            Listener::Person | Listener::QuietPerson => {
                let written = out(text.trim_end_matches('\n'));
                self.told().unwritten = written.err();
            }
        }
    }

    /// A field of the document that a person is told of in other words.
    pub fn field(&self, name: &'static str, value: Json) {
        self.told().document.more.insert(name.to_string(), value);
    }

    /// A line for a person who waits, which is no part of what was asked for.
    pub fn notice(&self, line: &str) {
        if self.0.listener != Listener::Program {
            self.0.display.around(|| err(line));
        }
    }

    /// A list of resources follows, which may be empty.
    pub fn list(&self) {
        self.told().document.resources.get_or_insert_default();
    }

    /// What is planned.
    pub fn plan(&self, plan: &Plan, detail: Detail) {
        for line in show::plan(plan, detail) {
            self.line(line);
        }
        if self.0.listener != Listener::Program {
            return;
        }
        let mut told = self.told();
        told.document.plan(plan);
        told.places = plan
            .steps
            .iter()
            .enumerate()
            .map(|(place, step)| ((step.urn.to_string(), step.position.is_none()), place))
            .collect();
    }

    /// So many operations are to be done.
    pub fn expect(&self, count: usize) {
        self.0.display.expect(count);
    }

    /// An operation of a step is begun.
    pub fn begin(&self, step: &Step) {
        self.told()
            .begun
            .insert((step.urn.clone(), step.position.is_none()), Instant::now());
        let what = match action(&step.action) {
            "create" => "creating",
            "import" => "adopting",
            "update" => "updating",
            "replace" => "replacing",
            "delete" => "deleting",
            _ => "working",
        };
        self.0.display.begin(&step.urn, what);
    }

    /// Something was done with a resource.
    pub fn done(&self, step: &Step, what: &'static str) {
        let took = self.end(step, "done");
        let took = took.map_or_else(String::new, |took| {
            format!(" {FAINT}({:.1} s){FAINT:#}", took.as_secs_f64())
        });
        self.line(format!("   {} {what}{took}", step.urn.name()));
        self.count(what);
    }

    /// A resource has become what this says.
    pub fn became(&self, state: &ResourceState) {
        if self.0.listener != Listener::Program {
            return;
        }
        let mut told = self.told();
        let place = told.places.get(&(state.urn.to_string(), false)).copied();
        let resources = told.document.resources.as_mut();
        if let Some(resource) = place.and_then(|place| resources?.get_mut(place)) {
            resource.became(state);
        }
    }

    /// Nothing was to be done with a resource, or it is told of elsewhere.
    pub fn nothing(&self, step: &Step) {
        self.end(step, "done");
    }

    /// A resource's operation failed.
    pub fn failed(&self, step: &Step, problems: Vec<Diagnostic>) {
        self.end(step, "failed");
        for problem in problems {
            self.problem(&problem);
        }
        self.count("failed");
    }

    /// A resource's operation was not begun.
    pub fn skipped(&self, step: &Step, why: &str) {
        self.end(step, "skipped");
        self.line(format!("   {} skipped: {why}", step.urn.name()));
        self.count("skipped");
    }

    fn end(&self, step: &Step, status: &'static str) -> Option<Duration> {
        let key = (step.urn.clone(), step.position.is_none());
        let mut told = self.told();
        let took = told.begun.remove(&key).map(|begun| begun.elapsed());
        let place = told.places.get(&(key.0.to_string(), key.1)).copied();
        let resources = told.document.resources.as_mut();
        if let Some(resource) = place.and_then(|place| resources?.get_mut(place)) {
            resource.status = status;
            resource.seconds = took.map(|took| took.as_secs_f64());
        }
        drop(told);
        if took.is_some() {
            self.0.display.end(&step.urn);
        }
        took
    }

    /// A resource of the document, where there is no plan.
    pub fn resource(&self, resource: Resource) {
        if self.0.listener == Listener::Program {
            self.told().document.resources.get_or_insert_default().push(resource);
        }
    }

    /// Something that a person should know.
    pub fn warn(&self, problem: &Diagnostic) {
        match self.0.listener {
            Listener::Program => {
                let mut told = self.told();
                let message = Message::of(problem, told.source.as_ref().map(|source| source.path.as_str()));
                told.document.warnings.push(message);
            }
            Listener::Person | Listener::QuietPerson => self.0.display.around(|| {
                err(&format!("{WARNING}warning{WARNING:#}: {}", problem.title()));
                if let Some(hint) = &problem.hint {
                    err(&format!("  {HINT}hint{HINT:#}: {hint}"));
                }
            }),
        }
    }

    /// Something is wrong.
    pub fn problem(&self, problem: &Diagnostic) {
        let mut told = self.told();
        if self.0.listener == Listener::Program {
            let message = Message::of(problem, told.source.as_ref().map(|source| source.path.as_str()));
            told.document.errors.push(message);
        } else {
            let text = excerpt::render(problem, told.source.as_ref(), self.0.width);
            self.0.display.around(|| err(&text));
        }
    }

    /// Tells what happens while an operation on a resource runs.
    pub fn on_event(&self, urn: &Urn, event: &Event) {
        match event {
            Event::Waiting {
                attempt,
                wait,
                reason,
                together,
                place,
            } => {
                let text = format!(
                    "attempt {attempt} failed, next in {:.1} s: {reason}",
                    wait.as_secs_f64()
                );
                match self.0.listener {
                    _ if self.0.display.is_drawn() => self.0.display.say(urn, &text),
                    // Those that wait together are told of once.
                    Listener::Person if *place == 0 => {
                        let others = match together - 1 {
                            0 => String::new(),
                            1 => " and 1 other".to_string(),
                            others => format!(" and {others} others"),
                        };
                        err(&format!("   {}{others}: {text}", urn.name()));
                    }
                    Listener::Person => {}
                    Listener::QuietPerson | Listener::Program => {}
                }
            }
            Event::Warning(line) => self.warn(&Diagnostic::of_urn(urn, None, line)),
            Event::Debug(_) => {}
        }
    }

    /// What hears of an operation on a resource.
    pub fn listener(&self, urn: &Urn) -> impl Fn(Event) + Send + Sync + 'static {
        let (report, urn) = (self.clone(), urn.clone());
        move |event| report.on_event(&urn, &event)
    }

    fn count(&self, what: &'static str) {
        *self.told().counts.entry(what).or_default() += 1;
    }

    /// One line that sums up what was done.
    pub fn summary(&self) {
        self.0.display.clear();
        let parts: Vec<String> = self
            .told()
            .counts
            .iter()
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        let parts = if parts.is_empty() {
            "nothing to do".to_string()
        } else {
            parts.join(", ")
        };
        let seconds = self.0.started.elapsed().as_secs_f64();
        self.line(format!("{HEADING}{parts}{HEADING:#} in {seconds:.1} s"));
    }

    /// What the stack gives to others.
    pub fn outputs(&self, outputs: &PropertyMap) {
        if outputs.is_empty() {
            return;
        }
        self.line(format!("{HEADING}Outputs{HEADING:#}"));
        let width = outputs
            .keys()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or_default();
        for (name, value) in outputs {
            self.line(format!("   {name:width$}  {value}"));
        }
        self.told().document.outputs(outputs);
    }

    /// Tells how the command ended, and gives the exit code.
    pub fn finish(&self, ended: Result<(), Failure>) -> ExitCode {
        self.0.display.clear();
        let (outcome, code) = match &ended {
            Ok(()) => ("done", 0),
            Err(Failure { ending, .. }) => (ending.name(), ending.code()),
        };
        let problems = ended.err().map(|failure| failure.problems).unwrap_or_default();
        let shown = match self.0.listener {
            Listener::Program => problems.len(),
            Listener::Person | Listener::QuietPerson => SHOWN_ERRORS,
        };
        problems.iter().take(shown).for_each(|problem| self.problem(problem));
        if problems.len() > shown {
            self.problem(&Diagnostic::new(format!(
                "and {} more like these",
                problems.len() - shown
            )));
        }
        self.end_document(outcome);
        match self.told().unwritten.take() {
            // Who closes a pipe has read enough.
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                err(&format!("error: the answer cannot be written: {error}"));
                ExitCode::from(Ending::Failed.code())
            }
            _ => ExitCode::from(code),
        }
    }

    /// Prints the document, once.
    pub fn end_document(&self, outcome: &'static str) {
        let mut told = self.told();
        if self.0.listener != Listener::Program || std::mem::replace(&mut told.is_over, true) {
            return;
        }
        told.document.outcome = outcome;
        told.document.seconds = self.0.started.elapsed().as_secs_f64();
        let written = serde_json::to_string_pretty(&told.document).map_err(io::Error::from);
        told.unwritten = written.and_then(|text| out(&text)).err();
    }
}
