#include "model/gguf/gguf_scan.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "gguf.h"

#include "base/error.h"

namespace knap {
namespace {

// Far above any real model, and low enough that ggml's tables stay small.
constexpr std::uint64_t kMaxEntries = 1 << 16;
constexpr std::uint64_t kMaxTensors = 1 << 16;
constexpr std::uint64_t kMaxStringsInArray = 1 << 22;

// The size in bytes of one value of a GGUF type; 0 for types without a fixed size and for numbers
// that are no type.
std::size_t value_bytes(std::uint32_t type) {
    switch (type) {
        case GGUF_TYPE_UINT8:
        case GGUF_TYPE_INT8:
        case GGUF_TYPE_BOOL:
            return 1;
        case GGUF_TYPE_UINT16:
        case GGUF_TYPE_INT16:
            return 2;
        case GGUF_TYPE_UINT32:
        case GGUF_TYPE_INT32:
        case GGUF_TYPE_FLOAT32:
            return 4;
        case GGUF_TYPE_UINT64:
        case GGUF_TYPE_INT64:
        case GGUF_TYPE_FLOAT64:
            return 8;
        default:
            return 0;
    }
}

class HeaderScanner {
  public:
    HeaderScanner(const std::filesystem::path& path, std::span<const std::byte> bytes)
        : path_(path), bytes_(bytes) {}

    void scan() {
        check_magic();
        check_version();
        const std::uint64_t n_tensors = count("number of tensors", kMaxTensors);
        const std::uint64_t n_entries = count("number of keys", kMaxEntries);
        for (std::uint64_t i = 0; i < n_entries; ++i) {
            part_ = concat("key ", i + 1, " of ", n_entries);
            skip_key();
            skip_value();
        }
        for (std::uint64_t i = 0; i < n_tensors; ++i) {
            part_ = concat("tensor ", i + 1, " of ", n_tensors);
            skip_tensor();
        }
    }

  private:
    void check_magic() {
        if (bytes_.size() < 4 || std::memcmp(bytes_.data(), GGUF_MAGIC, 4) != 0) {
            fail(path_.string(), ": expected a GGUF file, found one that does not begin with GGUF");
        }
        skip(4);
    }

    void check_version() {
        const auto version = take<std::uint32_t>();
        if (version < 2 || version > GGUF_VERSION) {
            fail(path_.string(), ": expected GGUF version 2 to ", GGUF_VERSION, ", found ",
                 version);
        }
    }

    std::uint64_t count(const char* what, std::uint64_t limit) {
        const auto n = take<std::uint64_t>();
        if (n > limit) {
            fail(path_.string(), ": ", what, ": expected at most ", limit, ", found ", n);
        }
        return n;
    }

    void skip_key() {
        const auto length = take<std::uint64_t>();
        if (length == 0) {  // for example after a wrong count, in a run of zeros
            fail_here("a key without a name");
        }
        skip(length);
    }

    void skip_value() {
        const auto type = take<std::uint32_t>();
        if (type == GGUF_TYPE_ARRAY) {
            const auto element_type = take<std::uint32_t>();
            skip_elements(element_type, take<std::uint64_t>());
        } else {
            skip_elements(type, 1);
        }
    }

    void skip_elements(std::uint32_t type, std::uint64_t n) {
        if (type == GGUF_TYPE_STRING) {
            if (n > kMaxStringsInArray) {
                fail_here(concat("expected at most ", kMaxStringsInArray, " strings, found ", n));
            }
            for (std::uint64_t i = 0; i < n; ++i) {
                skip_string();
            }
            return;
        }
        const std::size_t size = value_bytes(type);
        if (size == 0) {
            fail_here(concat("unknown type ", type));
        }
        if (n > remaining() / size) {
            fail_here(concat(n, " values of ", size, " bytes do not fit in the file"));
        }
        skip(n * size);
    }

    void skip_string() { skip(take<std::uint64_t>()); }

    void skip_tensor() {
        skip_string();
        const auto n_dims = take<std::uint32_t>();
        if (n_dims > GGML_MAX_DIMS) {
            fail_here(concat("expected at most ", GGML_MAX_DIMS, " dimensions, found ", n_dims));
        }
        skip(n_dims * sizeof(std::int64_t) + sizeof(std::uint32_t) + sizeof(std::uint64_t));
    }

    std::size_t remaining() const { return bytes_.size() - at_; }

    void skip(std::uint64_t n) {
        if (n > remaining()) {
            fail_here(concat("expected ", n, " bytes, found ", remaining(), " left in the file"));
        }
        at_ += n;
    }

    template <typename T>
    T take() {
        const std::size_t begin = at_;
        skip(sizeof(T));
        T value;
        std::memcpy(&value, bytes_.data() + begin, sizeof(T));
        return value;
    }

    [[noreturn]] void fail_here(std::string_view what) const {
        fail(path_.string(), ": truncated or damaged at byte ", at_, " (", part_, "): ", what);
    }

    const std::filesystem::path& path_;
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    std::string part_ = "header";  // what is being scanned, for messages
};

}  // namespace

void scan_gguf_header(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    HeaderScanner(path, bytes).scan();
}

}  // namespace knap
