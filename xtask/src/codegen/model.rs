//! What a Rust source shares with C, read with `syn`: constants and `#[repr(C)]` structures.
//!
//! Anything else is an error, not a guess, and so is a structure with hidden padding.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

/// An item in the order of the source.
#[derive(Debug)]
pub enum Item {
    Constant(Constant),
    Structure(Structure),
}

/// A number.
#[derive(Debug)]
pub struct Constant {
    pub name: String,
    /// Its type.
    pub kind: String,
    /// As it is written.
    pub text: String,
}

/// A structure.
#[derive(Debug)]
pub struct Structure {
    pub name: String,
    pub fields: Vec<Field>,
    /// Bytes.
    pub size: usize,
}

/// A field.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    /// Type of it, or of its elements.
    pub element: String,
    /// How many elements it has, as it is written; `None`: it is no array.
    pub count: Option<String>,
}

/// What is known of all sources so far.
#[derive(Debug)]
pub struct Model {
    /// Size and alignment of types, in bytes.
    sizes: HashMap<String, (usize, usize)>,
    constants: HashMap<String, u64>,
}

impl Default for Model {
    fn default() -> Self {
        let integers = [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("i32", 4), ("i64", 8)];
        let sizes = integers.iter().map(|&(name, size)| (name.into(), (size, size))).collect();
        Self { sizes, constants: HashMap::new() }
    }
}

impl Model {
    /// The items of one more source, which may use what those before it have.
    pub fn read(&mut self, source: &str) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for item in syn::parse_file(source)?.items {
            match item {
                syn::Item::Const(item) => items.push(Item::Constant(self.constant(&item)?)),
                syn::Item::Struct(item) => items.push(Item::Structure(self.structure(&item)?)),
                // What it uses is in a source before it, or unknown below.
                syn::Item::Use(_) => {}
                _ => bail!("can't be said in C: only constants and structures can"),
            }
        }
        Ok(items)
    }

    fn constant(&mut self, item: &syn::ItemConst) -> Result<Constant> {
        let name = item.ident.to_string();
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) = &*item.expr else {
            bail!("{name} is no number");
        };
        self.constants.insert(name.clone(), number.base10_parse()?);
        Ok(Constant { name, kind: type_name(&item.ty)?, text: number.to_string() })
    }

    fn structure(&mut self, item: &syn::ItemStruct) -> Result<Structure> {
        let name = item.ident.to_string();
        let is_c = |attribute: &syn::Attribute| {
            attribute.path().is_ident("repr")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|kind| kind == "C")
        };
        ensure!(item.attrs.iter().any(is_c), "{name} is not #[repr(C)]");
        let (mut size, mut alignment, mut fields) = (0_usize, 1, Vec::new());
        for field in &item.fields {
            let field = read_field(field).with_context(|| name.clone())?;
            let &(bytes, align) = self
                .sizes
                .get(&field.element)
                .with_context(|| format!("{name}: what is {}?", field.element))?;
            ensure!(size % align == 0, "{name}.{} has padding before it", field.name);
            size += bytes * self.length(&field)?;
            alignment = alignment.max(align);
            fields.push(field);
        }
        ensure!(size % alignment == 0, "{name} has padding at its end");
        self.sizes.insert(name.clone(), (size, alignment));
        Ok(Structure { name, fields, size })
    }

    fn length(&self, field: &Field) -> Result<usize> {
        let Some(count) = &field.count else { return Ok(1) };
        let known = self.constants.get(count).copied();
        let length = known.map_or_else(|| count.parse(), Ok).with_context(|| format!("what is {count}?"))?;
        Ok(usize::try_from(length)?)
    }
}

fn read_field(field: &syn::Field) -> Result<Field> {
    let name = field.ident.as_ref().context("a field has no name")?.to_string();
    let syn::Type::Array(array) = &field.ty else {
        return Ok(Field { name, element: type_name(&field.ty)?, count: None });
    };
    let length = match &array.len {
        syn::Expr::Cast(cast) => &*cast.expr,
        length => length,
    };
    let count = match length {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => number.to_string(),
        syn::Expr::Path(path) => path.path.require_ident()?.to_string(),
        _ => bail!("the length of {name} is neither a number nor a constant"),
    };
    Ok(Field { name, element: type_name(&array.elem)?, count: Some(count) })
}

fn type_name(kind: &syn::Type) -> Result<String> {
    match kind {
        syn::Type::Path(path) => Ok(path.path.require_ident()?.to_string()),
        _ => bail!("a type that C doesn't have"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> String {
        format!("{:#}", Model::default().read(source).expect_err(source))
    }

    #[test]
    fn what_c_would_lay_out_otherwise_is_refused() {
        assert!(refused("pub struct S { pub a: u32 }").contains("not #[repr(C)]"));
        assert!(
            refused("#[repr(C)] pub struct S { pub a: u32, pub b: u64 }").contains("S.b has padding before")
        );
        assert!(refused("#[repr(C)] pub struct S { pub a: u64, pub b: u32 }").contains("padding at its end"));
        assert!(refused("#[repr(C)] pub struct S { pub a: Other }").contains("what is Other?"));
        assert!(refused("#[repr(C)] pub struct S { pub a: [u8; N as usize] }").contains("what is N?"));
        assert!(refused("pub fn f() {}").contains("can't be said in C"));
    }

    #[test]
    fn a_source_uses_what_is_in_those_before_it() {
        let mut model = Model::default();
        model.read("pub const N: u32 = 0x10; #[repr(C)] pub struct A { pub a: [u8; N as usize] }").unwrap();
        let items =
            model.read("use super::A;\n#[repr(C)] pub struct B { pub a: [A; 2], pub b: u8 }").unwrap();
        let [Item::Structure(structure)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((structure.size, structure.fields[0].count.as_deref()), (33, Some("2")));
    }
}
