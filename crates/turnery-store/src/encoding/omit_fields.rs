//! Serializes a struct without some of its fields.

use serde::{
    Serialize, Serializer,
    ser::{Error, Impossible, SerializeMap, SerializeStruct},
};
use serde_json::Value;

/// A struct without the fields of these names.
pub(crate) struct OmitFields<'a, T>(pub(crate) &'a [&'a str], pub(crate) &'a T);

impl<T: Serialize> Serialize for OmitFields<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.1.serialize(FieldFilter {
            omitted: self.0,
            inner: serializer,
        })
    }
}

/// Forwards the fields of a struct except those of these names.
struct FieldFilter<'a, S> {
    omitted: &'a [&'a str],
    inner: S,
}

impl<S: SerializeStruct> SerializeStruct for FieldFilter<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        match self.omitted.contains(&name) {
            true => self.inner.skip_field(name),
            false => self.inner.serialize_field(name, value),
        }
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), S::Error> {
        self.inner.skip_field(name)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

/// A struct with flattened fields serializes as a map.
impl<S: SerializeMap> SerializeMap for FieldFilter<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_entry<K: Serialize + ?Sized, T: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &T,
    ) -> Result<(), S::Error> {
        match serde_json::to_value(key) {
            Ok(Value::String(name)) if self.omitted.contains(&name.as_str()) => Ok(()),
            Ok(Value::String(_)) => self.inner.serialize_entry(key, value),
            Ok(_) | Err(_) => Err(S::Error::custom("the name of a field is not a string")),
        }
    }

    fn serialize_key<K: Serialize + ?Sized>(&mut self, _: &K) -> Result<(), S::Error> {
        Err(S::Error::custom("a field without its value"))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), S::Error> {
        Err(S::Error::custom("a field without its name"))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

/// Defines methods of a serializer that fail, for values that are not structs with named fields.
macro_rules! no_struct {
    ($($method:ident($($of:ty),*) $(<$T:ident>)? -> $Ok:ty;)+) => {$(
        fn $method $(<$T: Serialize + ?Sized>)? (self, $(_: $of),*) -> Result<$Ok, S::Error> {
            Err(S::Error::custom("not a struct with named fields"))
        }
    )+};
}

impl<'a, S: Serializer> Serializer for FieldFilter<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeStruct = FieldFilter<'a, S::SerializeStruct>;
    type SerializeSeq = Impossible<S::Ok, S::Error>;
    type SerializeTuple = Impossible<S::Ok, S::Error>;
    type SerializeTupleStruct = Impossible<S::Ok, S::Error>;
    type SerializeTupleVariant = Impossible<S::Ok, S::Error>;
    type SerializeMap = FieldFilter<'a, S::SerializeMap>;
    type SerializeStructVariant = Impossible<S::Ok, S::Error>;

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        Ok(FieldFilter {
            omitted: self.omitted,
            inner: self.inner.serialize_struct(name, len)?,
        })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        Ok(FieldFilter {
            omitted: self.omitted,
            inner: self.inner.serialize_map(len)?,
        })
    }

    no_struct! {
        serialize_bool(bool) -> S::Ok;
        serialize_i8(i8) -> S::Ok;
        serialize_i16(i16) -> S::Ok;
        serialize_i32(i32) -> S::Ok;
        serialize_i64(i64) -> S::Ok;
        serialize_u8(u8) -> S::Ok;
        serialize_u16(u16) -> S::Ok;
        serialize_u32(u32) -> S::Ok;
        serialize_u64(u64) -> S::Ok;
        serialize_f32(f32) -> S::Ok;
        serialize_f64(f64) -> S::Ok;
        serialize_char(char) -> S::Ok;
        serialize_str(&str) -> S::Ok;
        serialize_bytes(&[u8]) -> S::Ok;
        serialize_none() -> S::Ok;
        serialize_some(&T) <T> -> S::Ok;
        serialize_unit() -> S::Ok;
        serialize_unit_struct(&'static str) -> S::Ok;
        serialize_unit_variant(&'static str, u32, &'static str) -> S::Ok;
        serialize_newtype_struct(&'static str, &T) <T> -> S::Ok;
        serialize_newtype_variant(&'static str, u32, &'static str, &T) <T> -> S::Ok;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}
