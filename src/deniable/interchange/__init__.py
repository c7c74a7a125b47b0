"""Read and write the files of other tools: SDV metadata and the paper authors' tool."""
