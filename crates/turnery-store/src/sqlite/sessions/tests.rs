//! Checks the query plans of the list statements.

use super::list_sql;
use crate::{ArchivedFilter, ListQuery};
use rusqlite::{Connection, params};

/// A step of a query plan, with its parent step.
struct PlanStep {
    id: i64,
    parent: i64,
    detail: String,
}

fn query_plan(db: &Connection, query: &ListQuery) -> Vec<PlanStep> {
    let folder = query.folder.as_ref().map(|cwd| cwd.to_str().unwrap());
    let sql = format!("EXPLAIN QUERY PLAN {}", list_sql(query));
    let mut explain = db.prepare(&sql).unwrap();
    let steps = explain.query_map(params!["~", "", 101, folder], |row| {
        Ok(PlanStep {
            id: row.get(0)?,
            parent: row.get(1)?,
            detail: row.get(3)?,
        })
    });
    steps.unwrap().map(Result::unwrap).collect()
}

#[test]
fn list_page_neither_scans_nor_sorts_the_table() {
    // The migration of an older database creates the same index.
    let upgraded = include_str!("../schema.sql").replace("CREATE INDEX sessions_listed", "--");
    let upgrade = include_str!("../from_3.sql").lines();
    let index = upgrade.filter(|line| line.starts_with("CREATE INDEX sessions_listed"));
    let upgraded = upgraded + &index.collect::<String>();
    for schema in [include_str!("../schema.sql"), &upgraded] {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(schema).unwrap();
        for cwd in [None, Some("/home/ann/project".into())] {
            for archived in [
                ArchivedFilter::Exclude,
                ArchivedFilter::Include,
                ArchivedFilter::Only,
            ] {
                for spawned in [false, true] {
                    let query = ListQuery {
                        folder: cwd.clone(),
                        archived,
                        spawned,
                        ..ListQuery::default()
                    };
                    let steps = query_plan(&db, &query);
                    let details: Vec<_> = steps.iter().map(|step| &step.detail).collect();
                    let page = steps.iter().find(|step| step.detail == "MATERIALIZE page");
                    let page = page.expect("the page is found first").id;
                    let inner = steps.iter().filter(|step| step.parent == page);
                    let inner: Vec<_> = inner.map(|step| step.detail.as_str()).collect();
                    // One index search in list order, without a sort.
                    let search = "SEARCH sessions USING COVERING INDEX sessions_listed \
                                  ((updated_at,session_id)<(?,?))";
                    assert_eq!(inner, [search], "{query:?}: {details:?}");
                    let scans = details.iter().any(|it| it.starts_with("SCAN sessions"));
                    assert!(!scans, "{query:?}: {details:?}");
                }
            }
        }
    }
}
