//! The encoders that both versions share, for the types of v2.

crate::view::shared_encoders::define_shared_encoders!(v2);
