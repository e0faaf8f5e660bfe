// A first walk over a GGUF header, before ggml parses it. ggml sizes its arrays by the counts that
// it reads, so a damaged count in a large file would claim many times the file's size; here every
// count is followed through the bytes, without allocating, and the first that does not hold is
// reported with its place.
//
//     header  := "GGUF" version:u32 n_tensors:u64 n_keys:u64 entry[n_keys] tensor[n_tensors]
//     entry   := key:string type:u32 value
//     value   := scalar | string | element_type:u32 count:u64 element[count]      (by type)
//     tensor  := name:string n_dims:u32 size:u64[n_dims] type:u32 offset:u64
//     string  := length:u64 byte[length]
//
// Little endian. What the values mean is left to ggml and to those who read them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace knap {

// Throws knap::Error, naming `path` and the byte, when `bytes` do not begin with a header of this
// form.
void scan_gguf_header(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace knap
