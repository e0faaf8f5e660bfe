#include "support/gguf_edit.h"

#include <cstring>
#include <stdexcept>

#include "gguf.h"

namespace knap::test {
namespace {

std::size_t value_bytes(std::uint32_t type) {
    switch (type) {
        case GGUF_TYPE_UINT8:
        case GGUF_TYPE_INT8:
        case GGUF_TYPE_BOOL:
            return 1;
        case GGUF_TYPE_UINT16:
        case GGUF_TYPE_INT16:
            return 2;
        case GGUF_TYPE_UINT64:
        case GGUF_TYPE_INT64:
        case GGUF_TYPE_FLOAT64:
            return 8;
        case GGUF_TYPE_UINT32:
        case GGUF_TYPE_INT32:
        case GGUF_TYPE_FLOAT32:
            return 4;
        default:
            throw std::logic_error("a type without a fixed size");
    }
}

class Walker {
  public:
    explicit Walker(std::span<const std::byte> bytes) : bytes_(bytes) {}

    GgufLayout walk() {
        where_ = "header";
        add(FieldKind::magic, 4);
        add(FieldKind::version, 4);
        const std::uint64_t n_tensors = add(FieldKind::tensor_count, 8);
        const std::uint64_t n_keys = add(FieldKind::key_count, 8);
        for (std::uint64_t i = 0; i < n_keys; ++i) {
            walk_entry();
        }
        for (std::uint64_t i = 0; i < n_tensors; ++i) {
            walk_tensor();
        }
        layout_.header_end = at_;
        layout_.data_begin = GGML_PAD(at_, GGUF_DEFAULT_ALIGNMENT);
        return std::move(layout_);
    }

  private:
    void walk_entry() {
        where_ = walk_string();
        auto type = static_cast<std::uint32_t>(add(FieldKind::value_type, 4));
        std::uint64_t n = 1;
        if (type == GGUF_TYPE_ARRAY) {
            type = static_cast<std::uint32_t>(add(FieldKind::element_type, 4));
            n = add(FieldKind::element_count, 8);
        }
        if (type != GGUF_TYPE_STRING) {
            add(FieldKind::value, n * value_bytes(type));
            return;
        }
        for (std::uint64_t i = 0; i < n; ++i) {
            walk_string();
        }
    }

    void walk_tensor() {
        where_ = walk_string();
        const std::uint64_t n_dims = add(FieldKind::dimension_count, 4);
        for (std::uint64_t i = 0; i < n_dims; ++i) {
            add(FieldKind::dimension, 8);
        }
        add(FieldKind::tensor_type, 4);
        add(FieldKind::tensor_offset, 8);
    }

    std::string walk_string() {
        const std::uint64_t length = add(FieldKind::string_length, 8);
        const std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
        add(FieldKind::string_text, length);
        return text;
    }

    // Returns the value if it has at most 8 bytes, else 0.
    std::uint64_t add(FieldKind kind, std::size_t size) {
        layout_.fields.push_back({kind, where_, at_, size});
        std::uint64_t value = 0;
        if (size <= sizeof(value)) {
            std::memcpy(&value, bytes_.data() + at_, size);
        }
        at_ += size;
        return value;
    }

    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    std::string where_;
    GgufLayout layout_;
};

}  // namespace

GgufLayout lay_out(std::span<const std::byte> bytes) {
    return Walker(bytes).walk();
}

std::vector<std::byte> with_value(std::span<const std::byte> bytes,
                                  const GgufField& field,
                                  std::uint64_t value) {
    std::vector<std::byte> result(bytes.begin(), bytes.end());
    if (field.size > sizeof(value)) {
        throw std::logic_error("a field of more than 8 bytes");
    }
    std::memcpy(result.data() + field.offset, &value, field.size);
    return result;
}

}  // namespace knap::test
