// Generates the messages of transactions. A client with rpcs uses tonic_build instead of prost_build.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::var("GATEHOUSE").unwrap_or_else(|_| "../..".to_string());
    let protos = [format!("{root}/proto/gatehouse/chain/v1/block.proto")];
    let includes = [format!("{root}/proto")];
    // Sorted map entries, as in the vectors.
    prost_build::Config::new().btree_map(["."]).include_file("stubs.rs").compile_protos(&protos, &includes)?;
    Ok(())
}
