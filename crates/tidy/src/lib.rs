//! Tests about the repository itself: layers, sizes, tables. There is nothing to call here.
