//! arrow-rs behind a pipe: one command per line on standard input, one answer per line on standard output.
//!
//! `load FILE` reads an Arrow IPC file with the columns `json` (strings) and `shape` (of the type to shred as; no
//! values), and in the metadata of the schema `paths`, one per line as `a.b<TAB>string`. The other commands run one
//! operation over all rows in this thread and answer with a count: `parse_json`, `shred_variant`, `unshred_variant`
//! and `to_json` (bytes of text), `get_shredded N` and `get_unshredded N` (values that are not null at path N).

use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{CastOptions, concat};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::ipc::reader::FileReader;
use parquet_variant::VariantPath;
use parquet_variant_compute::{
    GetOptions, VariantArray, json_to_variant, shred_variant, unshred_variant, variant_get, variant_to_json,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Data {
    json: ArrayRef,
    shape: DataType,
    paths: Vec<(String, FieldRef)>,
    plain: VariantArray,
    shredded: Option<VariantArray>,
}

fn load(path: &str) -> Outcome<Data> {
    let reader = FileReader::try_new(File::open(path)?, None)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    let columns: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    let json = concat(&columns)?;
    let shape = schema.field_with_name("shape")?.data_type().clone();
    let paths = schema.metadata()["paths"].lines().map(|line| {
        let (path, kind) = line.split_once('\t').unwrap_or((line, "string"));
        let data_type = match kind {
            "bigint" => DataType::Int64,
            "boolean" => DataType::Boolean,
            _ => DataType::Utf8,
        };
        (path.to_string(), Arc::new(Field::new("value", data_type, true)))
    });
    let paths = paths.collect();
    let plain = json_to_variant(&json)?;
    let shredded = shred_variant(&plain, &shape).ok();
    Ok(Data { json, shape, paths, plain, shredded })
}

fn get(array: &VariantArray, (path, field): &(String, FieldRef)) -> Outcome<usize> {
    let input: ArrayRef = Arc::new(array.inner().clone());
    let options = GetOptions::new_with_path(VariantPath::try_from(path.as_str())?)
        .with_as_type(Some(field.clone()))
        .with_cast_options(CastOptions { safe: true, ..Default::default() });
    let values = variant_get(&input, options)?;
    Ok(values.len() - values.null_count())
}

fn run(data: &Data, command: &str, argument: &str) -> Outcome<usize> {
    let shredded = || data.shredded.as_ref().ok_or("the schema cannot be shredded");
    match command {
        "parse_json" => Ok(json_to_variant(&data.json)?.len()),
        "shred_variant" => Ok(shred_variant(&data.plain, &data.shape)?.len()),
        "unshred_variant" => Ok(unshred_variant(shredded()?)?.len()),
        "to_json" => {
            let input: ArrayRef = Arc::new(data.plain.inner().clone());
            let text = variant_to_json(&input)?;
            let array: &dyn Array = &text;
            Ok(array.as_string::<i32>().value_data().len())
        }
        "get_shredded" => get(shredded()?, &data.paths[argument.parse::<usize>()?]),
        "get_unshredded" => get(&data.plain, &data.paths[argument.parse::<usize>()?]),
        _ => Err(format!("unknown command {command}").into()),
    }
}

fn main() -> Outcome<()> {
    let mut data: Option<Data> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match (command, &data) {
            ("load", _) => load(argument).map(|loaded| {
                let rows = loaded.json.len();
                data = Some(loaded);
                rows
            }),
            (_, Some(data)) => run(data, command, argument),
            (_, None) => Err("no data is loaded".into()),
        };
        match answer {
            Ok(count) => println!("{count}"),
            Err(error) => println!("error: {}", error.to_string().replace('\n', " ")),
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}
