//! The HTTP that web traffic speaks: requests and responses of exactly the sizes that were drawn.
//!
//! ```text
//! GET /RESPONSE_BYTES[?delay=MICROSECONDS] HTTP/1.1     the answer comes after that delay
//! X:000...                                              fills the request to its size
//! ```
//!
//! The answer is RESPONSE_BYTES long in all, its own head included, and its body is zeros; an answer shorter than a
//! head is bare zeros. After HTTP/1.0 the server closes, after 1.1 it does not, unless `Connection` says otherwise (RFC
//! 9112 §9.3). A request of more than [`LARGEST_HEAD`] bytes is a POST with a body. Numbers have zeros in front where
//! a size could not be met without. What is no such request is answered with 400 and closed.
//!
//! Packets on the wire are then what the models say, and foreign clients get answers that make sense to them.

use super::connections::Head;
use base::Span;
use std::io::Write;
use traffic::MOST_BYTES;

/// Up to this size a request is all head.
pub const LARGEST_HEAD: u64 = 8_000;
/// Room for the longest head that is written here.
pub const ROOM: usize = LARGEST_HEAD as usize;
/// How long [`Head::Refusal`] is.
pub const REFUSAL_BYTES: u64 = REFUSAL.len() as u64;

const REFUSAL: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\
    Content-Length: 62\r\n\r\nexpected GET /BYTES or GET /BYTES?delay=MICROSECONDS HTTP/1.x\n";
/// A request whose head has more bytes than this is refused.
const MOST_HEAD: u32 = 1 << 16;
/// Digits of the largest u64.
const MOST_DIGITS: usize = 20;

/// The size of the shortest request.
pub fn shortest_request(response_bytes: u64, delay: Span) -> u64 {
    request_line(&mut [0; 128], "GET", 0, response_bytes, delay, false) as u64 + 2
}

/// Writes what bytes of `total` begin with, as much as there is of it, and returns how much.
pub fn write_head(out: &mut [u8], head: Head, total: u64) -> usize {
    match head {
        Head::None => 0,
        Head::Request { response_bytes, delay, is_last } => write_request(out, total, response_bytes, delay, is_last),
        Head::Response { stays } => write_response(out, total, stays),
        Head::Refusal => {
            out[..REFUSAL.len()].copy_from_slice(REFUSAL);
            REFUSAL.len()
        }
    }
}

/// `total` is at least [`shortest_request`].
fn write_request(out: &mut [u8], total: u64, response_bytes: u64, delay: Span, is_last: bool) -> usize {
    if total > LARGEST_HEAD {
        const FIELD: &str = "Content-Length: ";
        let line = request_line(out, "POST", 0, response_bytes, delay, is_last);
        let body = total - (line + FIELD.len() + MOST_DIGITS + 4) as u64;
        // What the number is shorter than the longest is made up for by zeros before another.
        let line = request_line(out, "POST", MOST_DIGITS - digits(body), response_bytes, delay, is_last);
        return line + written(&mut out[line..], format_args!("{FIELD}{body}\r\n\r\n"));
    }
    let rest = total as usize - request_line(out, "GET", 0, response_bytes, delay, is_last) - 2;
    // The shortest line there can be is "X:" and its end.
    let (zeros, fill) = if rest < 4 { (rest, None) } else { (0, Some(rest - 4)) };
    let mut length = request_line(out, "GET", zeros, response_bytes, delay, is_last);
    if let Some(fill) = fill {
        length += written(&mut out[length..], format_args!("X:"));
        out[length..length + fill].fill(b'0');
        length += fill;
        length += written(&mut out[length..], format_args!("\r\n"));
    }
    length + written(&mut out[length..], format_args!("\r\n"))
}

fn request_line(out: &mut [u8], method: &str, zeros: usize, response_bytes: u64, delay: Span, is_last: bool) -> usize {
    let version = u8::from(!is_last);
    let width = zeros + digits(response_bytes);
    match (delay.ns() + 500) / 1000 {
        0 => written(out, format_args!("{method} /{response_bytes:0>width$} HTTP/1.{version}\r\n")),
        us => written(out, format_args!("{method} /{response_bytes:0>width$}?delay={us} HTTP/1.{version}\r\n")),
    }
}

fn write_response(out: &mut [u8], total: u64, stays: bool) -> usize {
    let version = u8::from(stays);
    // What is written below, without the number.
    const HEAD: u64 = 37;
    let most = digits(total);
    // The number has fewer digits than the total where the head takes the first of them.
    let is_shorter = |&width: &usize| total >= HEAD + width as u64 && digits(total - HEAD - width as u64) == width;
    let width = Some(most - 1).filter(is_shorter).unwrap_or(most);
    let Some(body) = total.checked_sub(HEAD + width as u64) else { return 0 };
    written(out, format_args!("HTTP/1.{version} 200 OK\r\nContent-Length: {body:0>width$}\r\n\r\n"))
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

fn written(out: &mut [u8], text: std::fmt::Arguments<'_>) -> usize {
    let room = out.len();
    let mut rest = out;
    rest.write_fmt(text).expect("there is room for the longest head");
    room - rest.len()
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// How long the response shall be, in all.
    pub response_bytes: u64,
    /// What the server takes to answer.
    pub delay: Span,
    /// Whether the connection stays open after it.
    pub stays: bool,
}

/// What came of a request so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// Not all of it.
    Part,
    /// All of it.
    All(Request),
    /// What is none.
    Nonsense,
}

/// How much of a line is looked at: a request's own, or the fields that matter here.
const LINE: usize = 96;

/// Reads a request as it comes, in whatever pieces.
#[derive(Clone, Debug)]
pub struct Parser {
    line: [u8; LINE],
    length: usize,
    head_bytes: u32,
    request: Option<Request>,
    body_bytes: u64,
    is_in_body: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self { line: [0; LINE], length: 0, head_bytes: 0, request: None, body_bytes: 0, is_in_body: false }
    }
}

impl Parser {
    /// Reads on in what came, and says how much of it belongs to this request. After one that is complete, or
    /// nonsense, it is at the start of another.
    pub fn read(&mut self, mut came: &[u8]) -> (usize, Came) {
        let all = came.len();
        loop {
            if self.is_in_body {
                let taken = self.body_bytes.min(came.len() as u64);
                self.body_bytes -= taken;
                came = &came[taken as usize..];
                if self.body_bytes > 0 {
                    return (all, Came::Part);
                }
                let request = self.request.expect("a body comes after a head");
                *self = Self::default();
                return (all - came.len(), Came::All(request));
            }
            let end = came.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(came.len(), |end| end + 1);
            self.head_bytes = self.head_bytes.saturating_add(taken as u32);
            let room = LINE - self.length;
            let kept = end.unwrap_or(came.len()).min(room);
            self.line[self.length..self.length + kept].copy_from_slice(&came[..kept]);
            self.length += kept;
            came = &came[taken..];
            if self.head_bytes > MOST_HEAD || end.is_some() && self.end_line().is_none() {
                *self = Self::default();
                return (all - came.len(), Came::Nonsense);
            }
            if end.is_none() {
                return (all, Came::Part);
            }
        }
    }

    /// A line is complete, as far as it was kept; `None` if it makes none of ours.
    fn end_line(&mut self) -> Option<()> {
        let length = std::mem::take(&mut self.length);
        let line = str::from_utf8(&self.line[..length]).ok()?;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let Some(request) = &mut self.request else {
            // RFC 9112 §2.2: empty lines before a request are ignored.
            if !line.is_empty() {
                self.request = Some(request_of(line)?);
            }
            return Some(());
        };
        if line.is_empty() {
            self.is_in_body = true;
            return Some(());
        }
        let (name, value) = line.split_once(':')?;
        let value = value.trim_matches([' ', '\t']);
        if name.eq_ignore_ascii_case("content-length") {
            self.body_bytes = number(value)?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return None;
        } else if name.eq_ignore_ascii_case("connection") {
            if value.eq_ignore_ascii_case("close") {
                request.stays = false;
            } else if value.eq_ignore_ascii_case("keep-alive") {
                request.stays = true;
            }
        }
        Some(())
    }
}

/// The request that a line makes.
fn request_of(line: &str) -> Option<Request> {
    let mut words = line.split(' ');
    let (method, path, version, end) = (words.next()?, words.next()?, words.next()?, words.next());
    let stays = match version {
        "HTTP/1.0" => false,
        "HTTP/1.1" => true,
        _ => return None,
    };
    if !matches!(method, "GET" | "POST") || end.is_some() {
        return None;
    }
    let path = path.strip_prefix('/')?;
    let (bytes, delay) = match path.split_once("?delay=") {
        Some((bytes, delay)) => (bytes, number(delay)?),
        None => (path, 0),
    };
    let response_bytes = number(bytes).filter(|bytes| (1..=MOST_BYTES).contains(bytes))?;
    // An hour is longer than any server takes.
    let delay = Span::from_us(Some(delay).filter(|&us| us <= 3_600_000_000)?);
    Some(Request { response_bytes, delay, stays })
}

/// A number of digits alone.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(total: u64, response_bytes: u64, us: u64, is_last: bool) -> Vec<u8> {
        let mut out = vec![0; ROOM];
        let head = Head::Request { response_bytes, delay: Span::from_us(us), is_last };
        let length = write_head(&mut out, head, total);
        out.resize(length, 0);
        // The body, if there is any.
        assert!(length as u64 <= total);
        out.resize(total as usize, 0);
        out
    }

    #[test]
    fn requests_have_their_sizes_and_are_understood() {
        for response_bytes in [1, 9, 10, 99_999, 1 << 50] {
            for us in [0, 7, 3_600_000_000] {
                for is_last in [false, true] {
                    let shortest = shortest_request(response_bytes, Span::from_us(us));
                    for total in (shortest..shortest + 40).chain(7_990..8_200).chain([100_000, 1_000_100]) {
                        let came = request(total, response_bytes, us, is_last);
                        let mut parser = Parser::default();
                        let expected = Request { response_bytes, delay: Span::from_us(us), stays: !is_last };
                        assert_eq!(parser.read(&came), (total as usize, Came::All(expected)), "{total}");
                    }
                }
            }
        }
        assert_eq!(shortest_request(1, Span::ZERO), "GET /1 HTTP/1.0\r\n\r\n".len() as u64);
    }

    #[test]
    fn requests_come_in_pieces_and_in_a_row() {
        let mut both = request(300, 5_000, 0, false);
        both.extend(request(9_000, 70, 1_000, true));
        for piece in [1, 7, 299, 300, 301, 9_299] {
            let (mut parser, mut found, mut at) = (Parser::default(), Vec::new(), 0);
            while at < both.len() {
                let end = (at + piece).min(both.len());
                let (read, came) = parser.read(&both[at..end]);
                assert!(read > 0);
                at += read;
                match came {
                    Came::All(request) => found.push((at, request.response_bytes, request.stays)),
                    came => assert_eq!((came, at), (Came::Part, end)),
                }
            }
            assert_eq!(found, [(300, 5_000, true), (9_300, 70, false)], "in pieces of {piece}");
        }
    }

    #[test]
    fn foreign_requests_are_understood_or_refused() {
        let read = |text: &str| Parser::default().read(text.as_bytes()).1;
        let request = |stays| Came::All(Request { response_bytes: 100, delay: Span::ZERO, stays });
        assert_eq!(
            read("GET /100 HTTP/1.1\r\nHost: 10.127.0.1\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\n"),
            request(true)
        );
        assert_eq!(read("\r\nGET /100 HTTP/1.1\nCONNECTION:close \n\n"), request(false));
        assert_eq!(read("GET /100 HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), request(true));
        let long = format!("GET /100 HTTP/1.0\r\nCookie: {}\r\n\r\n", "c".repeat(5_000));
        assert_eq!(read(&long), request(false));
        let endless = format!("GET /100 HTTP/1.0\r\nCookie: {}\r\n", "c".repeat(70_000));
        for nonsense in [
            "GET / HTTP/1.1\r\n",
            "GET /index.html HTTP/1.1\r\n",
            "GET /0 HTTP/1.1\r\n",
            "GET /+5 HTTP/1.1\r\n",
            "GET /99999999999999999999999 HTTP/1.1\r\n",
            "GET /5?delay=99999999999 HTTP/1.1\r\n",
            "GET /5 HTTP/2.0\r\n",
            "GET /5\r\n",
            "DELETE /5 HTTP/1.1\r\n",
            "GET /5 HTTP/1.1\r\nno field\r\n",
            "POST /5 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
            "POST /5 HTTP/1.1\r\nContent-Length: -1\r\n",
            "\u{16}\u{3}\u{1}\n",
            &endless,
        ] {
            assert_eq!(read(nonsense), Came::Nonsense, "{nonsense:.40}");
        }
        assert_eq!(Parser::default().read(b"\xff\xfe\n").1, Came::Nonsense);
    }

    #[test]
    fn responses_have_their_sizes() {
        for stays in [false, true] {
            for total in (1..2_000).chain([99_990, 100_037, 100_038, 100_039, 1 << 50]) {
                let mut out = vec![0; ROOM];
                let length = write_head(&mut out, Head::Response { stays }, total);
                if length == 0 {
                    assert!(total < 41, "{total} has room for a head");
                    continue;
                }
                let text = str::from_utf8(&out[..length]).expect("ASCII");
                assert!(text.starts_with(if stays { "HTTP/1.1 200 OK\r\n" } else { "HTTP/1.0 200 OK\r\n" }));
                assert!(text.ends_with("\r\n\r\n"));
                let value = text.split("Content-Length: ").nth(1).expect("it has one").trim_end();
                assert_eq!(value.parse::<u64>().expect("a number") + length as u64, total);
            }
        }
    }

    #[test]
    fn a_refusal_has_its_size() {
        let text = str::from_utf8(REFUSAL).expect("ASCII");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{} bytes", body.len());
    }
}
