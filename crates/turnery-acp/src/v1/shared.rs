//! The encoders that both versions share, for the types of v1.

crate::view::shared_encoders::define_shared_encoders!(v1);
