pub fn rows() -> Vec<crate::row::Row> { vec![] }
