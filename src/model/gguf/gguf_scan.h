// Scans a GGUF header before ggml parses it. ggml sizes its arrays by the counts that it reads, so
// a damaged count in a large file could make it allocate many times the file's size. The scan
// follows every count through the bytes without allocating, and reports the position of the first
// one that does not fit.
//
//     header  := "GGUF" version:u32 n_tensors:u64 n_keys:u64 entry[n_keys] tensor[n_tensors]
//     entry   := key:string type:u32 value
//     value   := scalar | string | element_type:u32 count:u64 element[count]      (by type)
//     tensor  := name:string n_dims:u32 size:u64[n_dims] type:u32 offset:u64
//     string  := length:u64 byte[length]
//
// All numbers are little endian. The meaning of the values is not checked here.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace knap {

// Throws knap::Error that names `path` and the byte when `bytes` do not start with such a header.
void scan_gguf_header(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace knap
