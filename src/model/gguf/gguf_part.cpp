#include "model/gguf/gguf_part.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/quoted.h"
#include "device/ggml_log.h"
#include "model/gguf/gguf_scan.h"

namespace knap {
namespace {

gguf_context_ptr parse_header(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    scan_gguf_header(path, bytes);
    const GgmlErrorCapture errors;
    gguf_context_ptr metadata(
        gguf_init_from_buffer(bytes.data(), bytes.size(), {.no_alloc = true, .ctx = nullptr}));
    if (metadata == nullptr) {
        fail(path.string(), ": damaged GGUF header: ", errors.reason());
    }
    return metadata;
}

template <typename T, typename Use>
bool use_as(const void* data, std::size_t index, Use use) {
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
    use(value);
    return true;
}

// Passes element `index` of `data` to `use` as the C++ type for `type`. Returns false when that is
// not a number.
template <typename Use>
bool use_number(gguf_type type, const void* data, std::size_t index, Use use) {
    switch (type) {
        case GGUF_TYPE_UINT8:
            return use_as<std::uint8_t>(data, index, use);
        case GGUF_TYPE_INT8:
            return use_as<std::int8_t>(data, index, use);
        case GGUF_TYPE_UINT16:
            return use_as<std::uint16_t>(data, index, use);
        case GGUF_TYPE_INT16:
            return use_as<std::int16_t>(data, index, use);
        case GGUF_TYPE_UINT32:
            return use_as<std::uint32_t>(data, index, use);
        case GGUF_TYPE_INT32:
            return use_as<std::int32_t>(data, index, use);
        case GGUF_TYPE_UINT64:
            return use_as<std::uint64_t>(data, index, use);
        case GGUF_TYPE_INT64:
            return use_as<std::int64_t>(data, index, use);
        case GGUF_TYPE_FLOAT32:
            return use_as<float>(data, index, use);
        case GGUF_TYPE_FLOAT64:
            return use_as<double>(data, index, use);
        default:
            return false;
    }
}

bool is_integer(gguf_type type) {
    switch (type) {
        case GGUF_TYPE_FLOAT32:
        case GGUF_TYPE_FLOAT64:
        case GGUF_TYPE_BOOL:
        case GGUF_TYPE_STRING:
        case GGUF_TYPE_ARRAY:
            return false;
        default:
            return true;
    }
}

// The size of a tensor in bytes, or nullopt when that overflows. ggml has checked that `type` is
// valid and that ne[0] is a multiple of its block size.
std::optional<std::size_t> tensor_bytes(ggml_type type, const std::int64_t* ne) {
    const auto n_blocks = static_cast<std::size_t>(ne[0] / ggml_blck_size(type));
    std::size_t n_bytes = 0;
    bool overflows = __builtin_mul_overflow(n_blocks, ggml_type_size(type), &n_bytes);
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        overflows |= __builtin_mul_overflow(n_bytes, static_cast<std::size_t>(ne[i]), &n_bytes);
    }
    return overflows ? std::nullopt : std::optional(n_bytes);
}

}  // namespace

// A key's value, stored by ggml.
struct GgufPart::Value {
    const gguf_context* metadata;
    std::int64_t id;

    bool is_array() const { return gguf_get_kv_type(metadata, id) == GGUF_TYPE_ARRAY; }
    gguf_type type() const {  // of the elements, for an array
        return is_array() ? gguf_get_arr_type(metadata, id) : gguf_get_kv_type(metadata, id);
    }
    bool is_scalar(gguf_type wanted) const { return !is_array() && type() == wanted; }
    std::size_t size() const { return gguf_get_arr_n(metadata, id); }  // for an array
    const void* data() const {                                         // for anything but strings
        return is_array() ? gguf_get_arr_data(metadata, id) : gguf_get_val_data(metadata, id);
    }
};

GgufPart::GgufPart(const std::filesystem::path& path)
    : path_(path), file_(path), metadata_(parse_header(path, file_.bytes())) {}

std::optional<GgufPart::Value> GgufPart::find(std::string_view key) const {
    const std::int64_t id = gguf_find_key(metadata_.get(), std::string(key).c_str());
    return id < 0 ? std::nullopt : std::optional(Value{metadata_.get(), id});
}

void GgufPart::fail_type(std::string_view key,
                         std::string_view expected,
                         const Value& found) const {
    fail(path_.string(), ": key ", key, ": expected ", expected, ", found ",
         found.is_array() ? "an array of " : "", gguf_type_name(found.type()));
}

std::optional<std::string> GgufPart::string(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) {
        return std::nullopt;
    }
    if (!value->is_scalar(GGUF_TYPE_STRING)) {
        fail_type(key, "a string", *value);
    }
    return gguf_get_val_str(value->metadata, value->id);
}

// `value` must hold integers.
std::uint64_t GgufPart::integer_at(std::string_view key,
                                   const Value& value,
                                   std::size_t index) const {
    std::uint64_t result = 0;
    use_number(value.type(), value.data(), index, [&](auto number) {
        if constexpr (std::is_integral_v<decltype(number)>) {
            if (std::cmp_less(number, 0)) {
                fail(path_.string(), ": key ", key, ": expected 0 or more, found ", +number);
            }
            result = static_cast<std::make_unsigned_t<decltype(number)>>(number);
        }
    });
    return result;
}

std::optional<std::uint64_t> GgufPart::integer(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) {
        return std::nullopt;
    }
    if (value->is_array() || !is_integer(value->type())) {
        fail_type(key, "an integer", *value);
    }
    return integer_at(key, *value, 0);
}

std::optional<std::uint64_t> GgufPart::integer_of_type(std::string_view key, gguf_type type) const {
    const std::optional<Value> value = find(key);
    if (value && !value->is_scalar(type)) {
        fail_type(key, gguf_type_name(type), *value);
    }
    return integer(key);
}

std::optional<double> GgufPart::number(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) {
        return std::nullopt;
    }
    double result = 0;
    const auto keep = [&](auto number) { result = static_cast<double>(number); };
    const bool has_data = !value->is_array() && value->type() != GGUF_TYPE_STRING;
    if (!has_data || !use_number(value->type(), value->data(), 0, keep)) {
        fail_type(key, "a number", *value);
    }
    return result;
}

std::optional<bool> GgufPart::boolean(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) {
        return std::nullopt;
    }
    if (!value->is_scalar(GGUF_TYPE_BOOL)) {
        fail_type(key, "a bool", *value);
    }
    return *static_cast<const std::int8_t*>(value->data()) != 0;
}

bool GgufPart::is_array(std::string_view key) const {
    const std::optional<Value> value = find(key);
    return value && value->is_array();
}

std::optional<std::size_t> GgufPart::array_size(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) {
        return std::nullopt;
    }
    if (!value->is_array()) {
        fail_type(key, "an array", *value);
    }
    return value->size();
}

std::optional<std::vector<std::uint64_t>> GgufPart::integers(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) {
        return std::nullopt;
    }
    if (!value->is_array() || !is_integer(value->type())) {
        fail_type(key, "an array of integers", *value);
    }
    std::vector<std::uint64_t> result(value->size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = integer_at(key, *value, i);
    }
    return result;
}

std::optional<std::vector<bool>> GgufPart::booleans(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) {
        return std::nullopt;
    }
    if (value->is_array() && is_integer(value->type())) {
        const std::vector<std::uint64_t> numbers = *integers(key);
        return std::vector<bool>(numbers.begin(), numbers.end());
    }
    if (!value->is_array() || value->type() != GGUF_TYPE_BOOL) {
        fail_type(key, "an array of bools", *value);
    }
    const auto* numbers = static_cast<const std::int8_t*>(value->data());
    return std::vector<bool>(numbers, numbers + value->size());
}

std::vector<TensorInfo> GgufPart::tensors(std::size_t part_index) const {
    std::vector<TensorInfo> tensors;
    const std::int64_t n_tensors = gguf_get_n_tensors(metadata_.get());
    for (std::int64_t id = 0; id < n_tensors; ++id) {
        tensors.push_back(tensor(id));
        tensors.back().part = part_index;
    }
    return tensors;
}

TensorInfo GgufPart::tensor(std::int64_t id) const {
    TensorInfo tensor{};
    tensor.name = gguf_get_tensor_name(metadata_.get(), id);
    tensor.type = gguf_get_tensor_type(metadata_.get(), id);
    const std::int64_t* ne = gguf_get_tensor_ne(metadata_.get(), id);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (ne[i] < 1) {
            fail(path_.string(), ": tensor ", in_quotes(tensor.name), ": dimension ", i,
                 ": expected at least 1, found ", ne[i]);
        }
        tensor.ne[i] = ne[i];
    }
    const std::optional<std::size_t> n_bytes = tensor_bytes(tensor.type, ne);
    const bool has_offset =
        !__builtin_add_overflow(gguf_get_data_offset(metadata_.get()),
                                gguf_get_tensor_offset(metadata_.get(), id), &tensor.offset);
    const std::size_t file_size = bytes().size();
    if (!n_bytes || !has_offset || tensor.offset > file_size ||
        *n_bytes > file_size - tensor.offset) {
        fail(path_.string(), ": tensor ", in_quotes(tensor.name),
             ": its data does not fit in the file of ", file_size,
             " bytes (truncated or damaged?)");
    }
    tensor.n_bytes = *n_bytes;
    tensor.data = bytes().data() + tensor.offset;
    return tensor;
}

}  // namespace knap
