// SPDX-License-Identifier: MIT
//! The questions of programs' starts, as text: those of one program's last start, or a profile of a toolkit's programs.
//!
//! ```text
//! xqos near questions 2
//! programs gtk3-demo zenity
//! 2 InternAtom WM_NAME
//! 1 RANDR::GetScreenResourcesCurrent root
//! end
//! ```
//!
//! A line is the number of programs that asked the question, and the question. Where the proxy knows their meaning,
//! numbers that a server assigns are replaced by names:
//!
//! | question | arguments |
//! |---|---|
//! | InternAtom, QueryExtension, OpenFont, AllocNamedColor, LookupColor | a name |
//! | AllocColor | red, green and blue |
//! | GetProperty of the root window | names of the property and of its type, offset, length |
//! | GetAtomName | saved as `InternAtom/1` of the name, which gives the same information |
//! | any other | the bytes after the header, with `root` and `colormap` in place of those of the first screen |
//!
//! `/1` after a request's name is the second byte of the request. Lines are in the order in which programs ask.

use crate::bytes::{NATIVE, named_request, request, text_at, with_text};
use crate::context::{ConnectionContext, next_state, open_font};
use crate::memory::{AskedQuestions, RememberedQuestion};
use crate::store::Store;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use xqos_wire::answerable::{Class, row};
use xqos_wire::x11::greeting::Screen;
use xqos_x11::names::{self, NameKind};

const TITLE: &str = "xqos near questions 2";
const PROGRAMS: &str = "programs";
const END: &str = "end";
/// Maximum number of questions. A typical start asks a few hundred questions whose answers can be stored.
const MAX_LINES: usize = 4096;
/// Maximum length of a request that is built from a line.
const MAX_REQUEST_BYTES: usize = 2048;
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Questions, each with the number of programs that asked it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    programs: Vec<String>,
    lines: Vec<Line>,
}

/// The number of the first line that is not valid; the line after the last one if the file is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not a valid question")]
pub struct Damaged(pub usize);

/// A question, and the number of programs that asked it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    count: usize,
    text: String,
}

/// A request that asks a question. The server assigns the major opcodes of extensions.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub extension: &'static str,
    pub request: Vec<u8>,
}

impl Questions {
    /// The questions of one connection of a program.
    pub fn of(program: &str, memory: &AskedQuestions, context: &ConnectionContext, store: &Store) -> Questions {
        let mut states: HashMap<&str, u64> = HashMap::new();
        let (mut lines, mut known) = (Vec::new(), HashSet::new());
        for entry in &memory.entries {
            let state = states.entry(&entry.extension).or_default();
            // The proxy repeats these questions on one connection, which can follow only one sequence of states.
            if !entry.extension.is_empty() && *state != entry.state {
                continue;
            }
            if name(entry).is_some_and(|name| row(name).class == Class::ConstantSetsState) {
                *state = next_state(*state, &entry.request);
            }
            let line = text(entry, context, store).map(|text| Line { count: 1, text }).filter(Line::is_valid);
            // The same question can be asked again in another state.
            lines.extend(line.filter(|line| known.insert((line.text.clone(), entry.state))));
        }
        Questions { programs: vec![escaped(program.as_bytes())], lines }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The questions that programs of this kind usually ask: those of at least half of the programs. Fonts and colours
    /// depend on a program's settings, and fonts are large, so these must be common to all programs.
    pub fn usual(&self) -> impl Iterator<Item = &Line> {
        let is_of_half = |line: &Line| 2 * line.count >= self.programs.len() && !line.is_of_settings();
        self.lines.iter().filter(move |line| self.is_of_all(line) || is_of_half(line))
    }

    pub fn is_of_all(&self, line: &Line) -> bool {
        line.count >= self.programs.len()
    }

    /// Splits the fonts that are not `known` into at most `most` parts. With fewer than two fonts, returns no parts.
    pub fn fonts(&self, most: usize, known: impl Fn(&[u8]) -> bool) -> Vec<Questions> {
        let unknown = |line: &Line| line.font().is_some_and(|font| !known(&font));
        let fonts: Vec<&Line> = self.usual().filter(|line| unknown(line)).collect();
        if fonts.len() < 2 {
            return Vec::new();
        }
        let mut parts = vec![Questions::default(); fonts.len().min(most)];
        let count = parts.len();
        fonts.into_iter().enumerate().for_each(|(at, font)| parts[at % count].lines.push(font.clone()));
        parts
    }

    /// Adds another connection or program. A program that is already listed adds only new questions. Each new question
    /// is inserted after its predecessor in `other`, which keeps the order of both. A repeated question counts as a
    /// separate one.
    pub fn merge(&mut self, other: &Questions) {
        let is_new = other.programs.iter().all(|program| !self.programs.contains(program));
        let (mut at, mut seen) = (0, HashMap::<&str, usize>::new());
        for line in &other.lines {
            let times = seen.entry(&line.text).or_default();
            let mut same = self.lines.iter().enumerate().filter(|(_, own)| own.text == line.text);
            let found = same.nth(*times).map(|(index, _)| index);
            *times += 1;
            match found {
                Some(found) => {
                    self.lines[found].count += if is_new { line.count } else { 0 };
                    at = found + 1;
                }
                None if self.lines.len() < MAX_LINES => {
                    self.lines.insert(at, line.clone());
                    at += 1;
                }
                None => {}
            }
        }
        let new = other.programs.iter().filter(|program| !self.programs.contains(program)).cloned().collect::<Vec<_>>();
        self.programs.extend(new);
    }

    /// Returns the questions that contain no numbers of this server.
    pub fn for_others(&self) -> Questions {
        let lines = self.lines.iter().filter(|line| !line.is_of_server()).cloned().collect();
        Questions { programs: self.programs.clone(), lines }
    }

    pub fn write(&self) -> String {
        let mut text = format!("{TITLE}\n{PROGRAMS} {}\n", self.programs.join(" "));
        self.lines.iter().for_each(|line| _ = writeln!(text, "{} {}", line.count, line.text));
        text + END + "\n"
    }

    /// Reads what [`Questions::write`] wrote. Lines that start with `#` are ignored.
    pub fn read(text: &str) -> Result<Questions, Damaged> {
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'));
        let mut next = || lines.next().ok_or(Damaged(text.lines().count() + 1));
        let (number, title) = next()?;
        if title != TITLE {
            return Err(Damaged(number));
        }
        let (number, programs) = next()?;
        let programs = programs.strip_prefix(PROGRAMS).ok_or(Damaged(number))?.split_whitespace();
        let programs: Vec<String> = programs.map(str::to_owned).collect();
        let (mut questions, mut known) = (Questions { programs, lines: Vec::new() }, HashSet::new());
        loop {
            let (number, line) = next()?;
            if line == END {
                return Ok(questions);
            }
            let (count, question) = line.split_once(' ').ok_or(Damaged(number))?;
            let line = Line { count: count.parse().map_err(|_| Damaged(number))?, text: question.to_owned() };
            // A program can ask an extension the same question again after it has set another version.
            let is_new = known.insert(question) || !line.extension().is_empty();
            let is_counted = (1..=questions.programs.len()).contains(&line.count);
            if !is_new || !is_counted || questions.lines.len() >= MAX_LINES || !line.is_valid() {
                return Err(Damaged(number));
            }
            questions.lines.push(line);
        }
    }
}

impl Line {
    /// The request's name. Only names of extensions contain spaces.
    fn name(&self) -> String {
        self.text.split([' ', '/']).next().unwrap_or_default().replace("%20", " ")
    }

    /// The extension's name; empty for the core protocol.
    pub fn extension(&self) -> String {
        self.name().split_once("::").map_or_else(String::new, |(extension, _)| extension.to_owned())
    }

    /// Whether the request sets state that the extension keeps for the client.
    pub fn sets_state(&self) -> bool {
        let name = self.name();
        name.contains("::") && row(&name).class == Class::ConstantSetsState
    }

    pub fn is_property(&self) -> bool {
        self.text.starts_with("GetProperty ")
    }

    pub fn font(&self) -> Option<Vec<u8>> {
        unescaped(self.text.strip_prefix("OpenFont ")?)
    }

    fn is_of_settings(&self) -> bool {
        let names = ["OpenFont ", "ListFonts", "AllocColor ", "AllocNamedColor ", "LookupColor ", "QueryColors "];
        names.iter().any(|name| self.text.starts_with(name))
    }

    /// Whether the question contains numbers that this server has assigned, such as those of outputs.
    fn is_of_server(&self) -> bool {
        let is_version = self.text.contains("::QueryVersion");
        let is_of_output = self.extension() == "RANDR" && !self.text.contains(" root") && !is_version;
        is_of_output || self.text.starts_with("XInputExtension::XIGetProperty")
    }

    /// The request. `None` if it needs the server's setup reply or an atom that is not known.
    pub fn build(&self, screen: Option<Screen>, atom: &dyn Fn(&[u8]) -> Option<u32>) -> Option<Asked> {
        let (head, arguments) = self.text.split_once(' ').unwrap_or((&self.text, ""));
        let data = head.split_once('/').map_or(Some(0), |(_, data)| data.parse().ok())?;
        let name = self.name();
        let (table, number) = names::request(&name)?;
        let words: Vec<&str> = if arguments.is_empty() { Vec::new() } else { arguments.split(' ').collect() };
        let request = match (name.as_str(), &words[..]) {
            ("InternAtom" | "QueryExtension", [text]) => named_request(NATIVE, number, data, &unescaped(text)?),
            // The connection that sends the request sets the font's ID.
            ("OpenFont", [text]) => screen.and(Some(open_font(NATIVE, 0, &unescaped(text)?)))?,
            ("AllocNamedColor" | "LookupColor", [text]) => {
                with_text(NATIVE, request(NATIVE, number, 0, &[screen?.colormap, 0]), 8, &unescaped(text)?)
            }
            ("AllocColor", [red, green, blue]) => {
                let mut bytes = request(NATIVE, number, 0, &[screen?.colormap, 0, 0]);
                for (at, value) in [(8, red), (10, green), (12, blue)] {
                    NATIVE.put_u16(&mut bytes, at, u16::from_str_radix(value, 16).ok()?);
                }
                bytes
            }
            ("GetProperty", [property, kind, offset, length]) => {
                let atom = |word: &str| word.parse().ok().or_else(|| atom(&unescaped(word)?));
                let words = [screen?.root, atom(property)?, atom(kind)?, offset.parse().ok()?, length.parse().ok()?];
                request(NATIVE, number, 0, &words)
            }
            ("InternAtom" | "QueryExtension" | "OpenFont" | "AllocNamedColor" | "LookupColor", _) => return None,
            ("AllocColor" | "GetProperty", _) => return None,
            _ => with_bytes(if table.extension.is_empty() { [number, data] } else { [0, number] }, &words, screen)?,
        };
        (request.len() <= MAX_REQUEST_BYTES).then_some(Asked { extension: table.extension, request })
    }

    /// Whether the proxy may send the request that asks this question.
    fn is_valid(&self) -> bool {
        let screen = Screen { root: 1, colormap: 1, visual: 1, depth: 1 };
        let name = self.name();
        let is_question = name == "OpenFont" || row(&name).class != Class::Never;
        is_question && self.build(Some(screen), &|_| Some(1)).is_some()
    }
}

fn with_bytes(head: [u8; 2], words: &[&str], screen: Option<Screen>) -> Option<Vec<u8>> {
    let mut bytes = vec![head[0], head[1], 0, 0];
    for word in words {
        match *word {
            "root" => bytes.extend(screen?.root.to_ne_bytes()),
            "colormap" => bytes.extend(screen?.colormap.to_ne_bytes()),
            _ if word.len() == 8 => bytes.extend(u32::from_str_radix(word, 16).ok()?.to_be_bytes()),
            _ => return None,
        }
    }
    let count = u16::try_from(bytes.len() / 4).ok()?;
    NATIVE.put_u16(&mut bytes, 2, count);
    Some(bytes)
}

fn name(entry: &RememberedQuestion) -> Option<&'static str> {
    names::table(&entry.extension)?.name(NameKind::Request, entry.request[usize::from(!entry.extension.is_empty())])
}

/// The text of a question; `None` if it names a resource of this server or this connection.
fn text(entry: &RememberedQuestion, context: &ConnectionContext, store: &Store) -> Option<String> {
    let (request, screen, name) = (&entry.request, context.greeting.screens.first()?, name(entry)?);
    let (short, word) = (|at| NATIVE.u16(request, at), |at| NATIVE.u32(request, at));
    let atom = |at| match word(at)? {
        predefined @ 0..=68 => Some(predefined.to_string()),
        number => store.atom_name(number).map(escaped),
    };
    let is_here = |at, resource| word(at) == Some(resource);
    let has_data = entry.extension.is_empty() && matches!(name, "InternAtom" | "QueryBestSize") && request[1] != 0;
    let head = name.replace(' ', "%20") + &if has_data { format!("/{}", request[1]) } else { String::new() };
    let arguments = match name {
        "InternAtom" | "QueryExtension" => escaped(text_at(NATIVE, request, 4, 8)?),
        "OpenFont" => escaped(text_at(NATIVE, request, 8, 12)?),
        "AllocNamedColor" | "LookupColor" if is_here(4, screen.colormap) => escaped(text_at(NATIVE, request, 8, 12)?),
        "AllocColor" if is_here(4, screen.colormap) => {
            format!("{:04x} {:04x} {:04x}", short(8)?, short(10)?, short(12)?)
        }
        "GetProperty" if is_here(4, screen.root) => format!("{} {} {} {}", atom(8)?, atom(12)?, word(16)?, word(20)?),
        "AllocNamedColor" | "LookupColor" | "AllocColor" | "GetProperty" => return None,
        "GetAtomName" => return Some(format!("InternAtom/1 {}", escaped(store.atom_name(word(4)?)?))),
        _ => {
            let words = request[4..].chunks_exact(4).map(|four| match u32::from_ne_bytes(four.try_into().ok()?) {
                root if root == screen.root => Some("root".to_owned()),
                colormap if colormap == screen.colormap => Some("colormap".to_owned()),
                // Show the bytes in memory order, on a machine of either byte order.
                other => Some(format!("{:08x}", other.to_be())),
            });
            words.collect::<Option<Vec<String>>>()?.join(" ")
        }
    };
    Some(if arguments.is_empty() { head } else { format!("{head} {arguments}") })
}

/// Escapes all bytes but visible ASCII as `%20`, and an initial digit too, because numbers stand for predefined atoms.
fn escaped(bytes: &[u8]) -> String {
    let is_plain = |at: usize, byte: u8| byte.is_ascii_graphic() && byte != b'%' && !(at == 0 && byte.is_ascii_digit());
    let letter = |(at, &byte): (usize, &u8)| {
        if is_plain(at, byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }
    };
    bytes.iter().enumerate().map(letter).collect()
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_wire::x11::greeting::Greeting;
    use xqos_wire::x11::xproto as op;

    fn context(root: u32) -> ConnectionContext {
        let screens = vec![Screen { root, colormap: 0x20, visual: 0x21, depth: 24 }];
        ConnectionContext::new(NATIVE, Greeting { screens, ..Greeting::default() })
    }

    fn of(program: &str, lines: &[&str]) -> Questions {
        let lines = lines.iter().map(|line| format!("1 {line}\n")).collect::<Vec<_>>().concat();
        Questions::read(&format!("{TITLE}\n{PROGRAMS} {program}\n{lines}{END}\n")).unwrap()
    }

    fn usual(questions: &Questions) -> Vec<String> {
        questions.usual().map(|line| line.text.clone()).collect()
    }

    #[test]
    fn questions_are_valid_on_another_server() {
        let mut memory = AskedQuestions::default();
        let property = |root, atom| request(NATIVE, op::GET_PROPERTY_REQUEST, 0, &[root, atom, 31, 0, 100]);
        let monitors = |major, root| request(NATIVE, major, 42, &[root, 1]);
        memory.add("", 0, &named_request(NATIVE, op::INTERN_ATOM_REQUEST, 0, b"A b%"));
        memory.add("", 0, &property(0x50, 200));
        memory.add("", 0, &property(0x50, 201));
        memory.add("", 0, &request(NATIVE, op::GET_ATOM_NAME_REQUEST, 0, &[200]));
        memory.add("", 0, &request(NATIVE, op::ALLOC_COLOR_REQUEST, 0, &[0x20, u32::from_ne_bytes([1, 2, 3, 4]), 5]));
        memory.add("RANDR", 0, &monitors(140, 0x50));
        let mut store = Store::default();
        let reply = |atom: u32| [&[1, 0, 0, 0, 0, 0, 0, 0][..], &atom.to_ne_bytes(), &[0; 20]].concat();
        let atom = |name: &[u8]| crate::store::Question::named(op::INTERN_ATOM_REQUEST, name);
        store.keep(NATIVE, atom(b"A b%"), &reply(200), None, store.changes());
        let questions = Questions::of("a program", &memory, &context(0x50), &store);
        assert_eq!(Questions::read(&questions.write()), Ok(questions.clone()));
        let there = context(0x99).greeting.screens[0];
        let asked = questions.usual().map(|line| line.build(Some(there), &|name| (name == b"A b%").then_some(7)));
        let asked: Vec<_> = asked.map(|asked| asked.unwrap().request).collect();
        assert_eq!(asked[0], memory.entries[0].request);
        assert_eq!(asked[1], property(0x99, 7));
        assert_eq!(asked[2], named_request(NATIVE, op::INTERN_ATOM_REQUEST, 1, b"A b%"), "for GetAtomName");
        assert_eq!(asked[3], memory.entries[4].request, "the color");
        assert_eq!(asked[4], monitors(0, 0x99));
        assert_eq!(asked.len(), 5, "the name of property 201 is unknown");
    }

    #[test]
    fn questions_in_another_state_of_the_extension_are_left_out() {
        let mut memory = AskedQuestions::default();
        let (version, formats) = (request(NATIVE, 139, 0, &[0, 11]), request(NATIVE, 139, 1, &[]));
        for (state, request) in [(0, &version), (next_state(0, &version), &formats), (7, &formats)] {
            memory.add("RENDER", state, request);
        }
        let versions = [(0, &version), (next_state(0, &version), &version)];
        let twice = next_state(versions[1].0, &version);
        versions.iter().for_each(|(state, version)| memory.add("XFIXES", *state, version));
        memory.add("XFIXES", twice, &version);
        let mut questions = Questions::of("program", &memory, &context(1), &Store::default());
        let render = ["RENDER::QueryVersion 00000000 0b000000", "RENDER::QueryPictFormats"];
        let xfixes = ["XFIXES::QueryVersion 00000000 0b000000"; 3];
        assert_eq!(usual(&questions), [&render[..], &xfixes].concat());
        assert_eq!(Questions::read(&questions.write()), Ok(questions.clone()));
        questions.merge(&questions.clone());
        assert_eq!(usual(&questions), [&render[..], &xfixes].concat(), "each is the same question as before");
    }

    #[test]
    fn a_profile_keeps_questions_of_half_the_programs_and_fonts_of_all() {
        let mut all = of("one", &["QueryExtension SHAPE", "OpenFont fixed", "InternAtom A", "InternAtom B"]);
        all.merge(&of("two", &["OpenFont fixed", "InternAtom C", "InternAtom B", "OpenFont cursor"]));
        all.merge(&of("three", &["OpenFont fixed", "InternAtom B", "InternAtom A"]));
        all.merge(&of("three", &["OpenFont fixed", "InternAtom C"]));
        assert_eq!(usual(&all), ["OpenFont fixed", "InternAtom A", "InternAtom B"]);
        let order: Vec<&str> = all.lines.iter().map(|line| &line.text[..]).collect();
        let place = |line| order.iter().position(|it| *it == line);
        assert!(place("OpenFont fixed") < place("InternAtom C") && place("InternAtom B") < place("OpenFont cursor"));
        assert_eq!(Questions::read(&all.write()), Ok(all));
    }

    #[test]
    fn damaged_files_are_refused_with_the_line() {
        let whole = of("program", &["InternAtom A", "RANDR::GetMonitors root 00000001"]).write();
        for end in 0..whole.len() - 1 {
            assert!(Questions::read(&whole[..end]).is_err(), "{}", &whole[..end]);
        }
        let wrong = [
            "1 GrabServer",
            "1 InternAtom",
            "1 InternAtom a b",
            "1 InternAtom %4",
            "1 InternAtom %zz",
            "1 AllocColor 1 2",
            "0 InternAtom B",
            "2 InternAtom B",
            "-1 InternAtom B",
            "1 InternAtom A",
            "1 RANDR::GetMonitors 0000001",
            "1 RANDR::Nothing",
            "1 KillClient 00000000",
            "1 GetProperty 1 2 3",
            "1 InternAtom/300 B",
            "InternAtom B",
            "",
        ];
        for line in wrong {
            let text = whole.replace("1 RANDR", &format!("{line}\n1 RANDR"));
            assert_eq!(Questions::read(&text), Err(Damaged(4)), "{line}");
        }
        let long = format!("1 InternAtom {}\n1 RANDR", "a".repeat(MAX_REQUEST_BYTES));
        assert_eq!(Questions::read(&whole.replace("1 RANDR", &long)), Err(Damaged(4)));
        let many = (0..=MAX_LINES).map(|number| format!("1 InternAtom A{number}\n")).collect::<Vec<_>>().concat();
        assert_eq!(Questions::read(&whole.replace("1 InternAtom A\n", &many)), Err(Damaged(3 + MAX_LINES)));
        assert!(Questions::read(&whole.replace("1 RANDR", "# a comment\n1 RANDR")).is_ok());
    }

    #[test]
    fn profiles_do_not_name_the_outputs_of_one_server() {
        let lines = ["RANDR::GetOutputInfo 3c000000 10a9d400", "RANDR::GetMonitors root 00000001", "InternAtom A"];
        assert_eq!(usual(&of("program", &lines).for_others()), lines[1..]);
    }
}
