//! Access control: tokens with scopes, read from a file. A server without tokens allows everything, and therefore listens on loopback only.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plumb_store::Tenant;

use crate::error::{ApiError, ErrorCode};

/// Shortest accepted token, in bytes: a shorter one can be guessed.
const SHORTEST: usize = 16;

/// The permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Sending profiles.
    Write,
    /// Querying the store.
    Read,
    /// Both, for all tenants, and reading metrics.
    Admin,
}

impl FromStr for Scope {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "write" => Ok(Self::Write),
            "read" => Ok(Self::Read),
            "admin" => Ok(Self::Admin),
            _ => Err(()),
        }
    }
}

/// A token with its permission.
#[derive(Clone, PartialEq, Eq)]
struct Token {
    secret: Vec<u8>,
    scopes: Vec<Scope>,
    /// The tenant whose profiles it gives access to; `None`: all tenants.
    tenant: Option<Tenant>,
}

/// All tokens. Clones share them.
#[derive(Clone)]
pub struct Tokens {
    current: Arc<RwLock<Vec<Token>>>,
    /// The file that they were read from.
    path: Option<PathBuf>,
}

/// The reason why a token file is rejected.
#[derive(Debug)]
pub enum TokenError {
    /// The file can't be read.
    Io(PathBuf, std::io::Error),
    /// Other users may read or change the file.
    Open(PathBuf),
    /// An invalid line: its number and the reason.
    Line(PathBuf, usize, String),
    /// The file has no token.
    Empty(PathBuf),
}

impl fmt::Display for TokenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(out, "cannot read {}: {error}", path.display()),
            Self::Open(path) => {
                let path = path.display();
                write!(out, "{path} holds tokens and other users can access it; run: chmod 600 {path}")
            }
            Self::Line(path, line, why) => write!(
                out,
                "{}:{line}: {why}; a line is a token, its scopes (write,read or admin) and maybe a tenant",
                path.display()
            ),
            Self::Empty(path) => write!(out, "{} holds no token", path.display()),
        }
    }
}

impl std::error::Error for TokenError {}

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the tokens themselves.
        write!(out, "Tokens({})", self.read_current().len())
    }
}

impl Tokens {
    /// Reads a file that only its owner may read, or, if that is somebody other than this process' user, its group, as Kubernetes mounts secrets: on each line a token, its scopes with commas between, and maybe a tenant.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, TokenError> {
        let path = path.into();
        Ok(Self { current: Arc::new(RwLock::new(Self::of_file(&path)?)), path: Some(path) })
    }

    /// Reads the file again, if there is one. Returns whether it has changed.
    ///
    /// # Errors
    /// The file is refused; the tokens stay as they are.
    pub(crate) fn reload(&self) -> Result<bool, TokenError> {
        let Some(path) = &self.path else { return Ok(false) };
        let read = Self::of_file(path)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = *current != read;
        *current = read;
        Ok(is_new)
    }

    fn of_file(path: &Path) -> Result<Vec<Token>, TokenError> {
        use std::os::unix::fs::MetadataExt;
        let path = path.to_owned();
        let io = |error| TokenError::Io(path.clone(), error);
        let file = std::fs::metadata(&path).map_err(io)?;
        // A user's own file needs no group.
        let is_own = std::fs::metadata("/proc/self").map_or(true, |own| own.uid() == file.uid());
        if file.mode() & if is_own { 0o077 } else { 0o007 } != 0 {
            return Err(TokenError::Open(path));
        }
        let text = std::fs::read_to_string(&path).map_err(io)?;
        let tokens = Self::parse(&text).map_err(|(line, why)| TokenError::Line(path.clone(), line, why))?;
        if tokens.is_empty() { Err(TokenError::Empty(path)) } else { Ok(tokens) }
    }

    /// Parses the lines; the error is a line number and the reason.
    fn parse(text: &str) -> Result<Vec<Token>, (usize, String)> {
        let mut tokens = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: String| (number + 1, why);
            let mut words = line.split_whitespace();
            let secret = words.next().unwrap_or_default().as_bytes().to_vec();
            if secret.len() < SHORTEST {
                return Err(wrong(format!("the token has fewer than {SHORTEST} characters")));
            }
            let scopes = words.next().ok_or_else(|| wrong("the scopes are missing".into()))?;
            let scope = |text: &str| text.parse().map_err(|()| wrong(format!("unknown scope {text:?}")));
            let scopes = scopes.split(',').map(scope).collect::<Result<Vec<Scope>, _>>()?;
            let tenant =
                words.next().map(Tenant::new).transpose().map_err(|error| wrong(error.to_string()))?;
            if let Some(more) = words.next() {
                return Err(wrong(format!("unexpected {more:?}")));
            }
            tokens.push(Token { secret, scopes, tenant });
        }
        Ok(tokens)
    }

    /// One token that may send profiles, for a sender started by this process.
    pub fn writer(token: &str) -> Self {
        let token = Token { secret: token.as_bytes().to_vec(), scopes: vec![Scope::Write], tenant: None };
        Self::of(vec![token])
    }

    fn of(tokens: Vec<Token>) -> Self {
        Self { current: Arc::new(RwLock::new(tokens)), path: None }
    }

    fn read_current(&self) -> RwLockReadGuard<'_, Vec<Token>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token with all permissions, for queries between servers of one bucket.
    pub(crate) fn admin(&self) -> Option<String> {
        let tokens = self.read_current();
        let is_admin = |token: &&Token| token.scopes.contains(&Scope::Admin) && token.tenant.is_none();
        String::from_utf8(tokens.iter().find(is_admin)?.secret.clone()).ok()
    }

    /// Checks whether a request has a scope; returns the tenant of its token, if it has one.
    pub(crate) fn check(&self, headers: &HeaderMap, scope: Scope) -> Result<Option<Tenant>, ApiError> {
        let given = given(headers).ok_or_else(|| {
            let message = "a token is needed: send the header Authorization: Bearer TOKEN";
            ApiError::new(ErrorCode::Unauthenticated, message)
        })?;
        // All tokens are compared, so that timing reveals nothing.
        let tokens = self.read_current();
        let mut known: Option<&Token> = None;
        for token in tokens.iter() {
            if equal(&token.secret, &given) {
                known = Some(token);
            }
        }
        let token =
            known.ok_or_else(|| ApiError::new(ErrorCode::Unauthenticated, "the token is not known"))?;
        if !token.scopes.contains(&scope) && !token.scopes.contains(&Scope::Admin) {
            let message =
                format!("the token does not allow this: it needs the scope {scope:?}").to_lowercase();
            return Err(ApiError::new(ErrorCode::PermissionDenied, message));
        }
        Ok(token.tenant.clone())
    }
}

/// The token of a request: a bearer token, or the password of basic authentication, as SDKs send it.
fn given(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().as_bytes().to_vec());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = STANDARD.decode(rest.trim()).ok()?;
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        return Some(decoded[colon + 1..].to_vec());
    }
    None
}

/// Compares in time that depends only on the lengths.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const FILE: &str =
        "# comment\nwriter-0123456789 write shop\nreader-0123456789 read,write\nadmin-01234567890 admin\n";

    fn check(authorization: &str, scope: Scope) -> Result<Option<String>, ErrorCode> {
        let tokens = Tokens::of(Tokens::parse(FILE).unwrap());
        let mut headers = HeaderMap::new();
        if !authorization.is_empty() {
            headers.insert(header::AUTHORIZATION, authorization.parse().unwrap());
        }
        let tenant = tokens.check(&headers, scope).map_err(|error| error.code)?;
        Ok(tenant.map(|tenant| tenant.to_string()))
    }

    #[test]
    fn a_token_allows_what_its_line_says() {
        assert_eq!(check("Bearer writer-0123456789", Scope::Write), Ok(Some("shop".into())));
        assert_eq!(check("Bearer writer-0123456789", Scope::Read), Err(ErrorCode::PermissionDenied));
        assert_eq!(check("bearer reader-0123456789", Scope::Read), Ok(None));
        assert_eq!(check("Bearer admin-01234567890", Scope::Read), Ok(None));
        // printf 'user:reader-0123456789' | base64
        assert_eq!(check("Basic dXNlcjpyZWFkZXItMDEyMzQ1Njc4OQ==", Scope::Read), Ok(None));
        for wrong in
            ["", "Bearer reader-012345678", "Bearer reader-01234567890", "Basic !!", "reader-0123456789"]
        {
            assert_eq!(check(wrong, Scope::Read), Err(ErrorCode::Unauthenticated), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (line, why) in [
            ("short read", "fewer than 16"),
            ("writer-0123456789", "scopes are missing"),
            ("writer-0123456789 all", "unknown scope \"all\""),
            ("writer-0123456789 read ../x", "invalid tenant"),
            ("writer-0123456789 read a b", "unexpected \"b\""),
        ] {
            let (number, found) = Tokens::parse(&format!("\n{line}")).err().unwrap();
            assert!(number == 2 && found.contains(why), "{found}");
        }
    }
}
