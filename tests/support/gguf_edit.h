// Maps the bytes of a GGUF header to fields, so that a test can damage each kind of field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace knap::test {

enum class FieldKind {
    magic,
    version,
    tensor_count,
    key_count,
    string_length,
    string_text,
    value_type,
    element_type,
    element_count,
    value,  // a number, or all numbers of an array
    dimension_count,
    dimension,
    tensor_type,
    tensor_offset,
};

struct GgufField {
    FieldKind kind;
    std::string where;  // "llama.block_count", "blk.0.attn_q.weight"
    std::size_t offset;
    std::size_t size;
};

struct GgufLayout {
    std::vector<GgufField> fields;  // in file order
    std::size_t header_end = 0;     // then padding, then data
    std::size_t data_begin = 0;
};

// `bytes` must be a valid file with the default alignment.
GgufLayout lay_out(std::span<const std::byte> bytes);

// `bytes` with `value`, little endian, in place of a field of at most 8 bytes.
std::vector<std::byte> with_value(std::span<const std::byte> bytes,
                                  const GgufField& field,
                                  std::uint64_t value);

}  // namespace knap::test
