#include "model/gguf/gguf_file.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/quoted.h"
#include "model/gguf/gguf_part.h"
#include "model/gguf/gguf_split.h"

namespace knap {
namespace {

// Which part of a split model a file claims to be. Numbers start at 1.
struct SplitPlace {
    std::uint64_t number = 1;
    std::uint64_t count = 1;
    bool operator==(const SplitPlace&) const = default;
};

SplitPlace read_split_place(const GgufPart& part) {
    const std::uint64_t count = part.integer_of_type("split.count", GGUF_TYPE_UINT16).value_or(1);
    if (count <= 1) {
        return {};
    }
    const auto index = part.integer_of_type("split.no", GGUF_TYPE_UINT16);
    if (!index) {
        fail(part.path().string(), ": key split.no: expected an index below ", count,
             ", found no such key");
    }
    return {*index + 1, count};
}

// The parts after `first`, in order. Empty when the model is a single file.
std::vector<GgufPart> open_further_parts(const GgufPart& first) {
    const SplitPlace place = read_split_place(first);
    std::vector<GgufPart> parts;
    if (place.count == 1) {
        return parts;
    }
    const std::optional<SplitName> name = parse_split_name(first.path());
    if (!name || std::cmp_not_equal(name->count, place.count)) {
        fail(first.path().string(), ": one of ", place.count,
             " parts: expected a file name that ends in -0000K-of-0000N.gguf with N = ",
             place.count);
    }
    if (place.number != 1) {
        fail(first.path().string(), ": part ", place.number, " of ", place.count,
             ": open the first part instead, ", name->part(1).string());
    }
    for (std::uint64_t number = 2; number <= place.count; ++number) {
        const std::filesystem::path path = name->part(static_cast<int>(number));
        if (!std::filesystem::exists(path)) {
            fail(first.path().string(), ": part ", number, " of ", place.count,
                 " is missing: expected ", path.string());
        }
        parts.emplace_back(path);
        const SplitPlace found = read_split_place(parts.back());
        if (found != SplitPlace{number, place.count}) {
            fail(path.string(), ": expected part ", number, " of ", place.count, ", found part ",
                 found.number, " of ", found.count);
        }
    }
    return parts;
}

}  // namespace

struct GgufFile::Impl {
    std::vector<GgufPart> parts;
    std::vector<std::span<const std::byte>> mappings;
    std::size_t total_bytes = 0;
    std::vector<TensorInfo> tensors;
    std::unordered_map<std::string_view, std::size_t> tensor_by_name;  // views into `tensors`

    const GgufPart& first() const { return parts.front(); }
    void add(GgufPart part);
    void index_tensors();
    void check_tensor_count() const;
};

void GgufFile::Impl::add(GgufPart part) {
    const std::vector<TensorInfo> added = part.tensors(parts.size());
    tensors.insert(tensors.end(), added.begin(), added.end());
    mappings.push_back(part.bytes());
    total_bytes += part.bytes().size();
    parts.push_back(std::move(part));
}

void GgufFile::Impl::index_tensors() {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (!tensor_by_name.emplace(tensors[i].name, i).second) {
            fail(parts[tensors[i].part].path().string(), ": tensor ", in_quotes(tensors[i].name),
                 " appears twice");
        }
    }
}

void GgufFile::Impl::check_tensor_count() const {
    const std::size_t n_tensors = tensors.size();
    const std::uint64_t expected = first().integer("split.tensors.count").value_or(n_tensors);
    if (parts.size() > 1 && expected != n_tensors) {
        fail(first().path().string(), ": expected ", expected, " tensors in ", parts.size(),
             " parts, found ", n_tensors);
    }
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
    auto impl = std::make_unique<Impl>();
    impl->add(GgufPart(path));
    for (GgufPart& part : open_further_parts(impl->first())) {
        impl->add(std::move(part));
    }
    impl->index_tensors();
    impl->check_tensor_count();
    return GgufFile(std::move(impl));
}

GgufFile::GgufFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgufFile::~GgufFile() = default;
GgufFile::GgufFile(GgufFile&&) noexcept = default;

const std::filesystem::path& GgufFile::path() const {
    return impl_->first().path();
}

std::size_t GgufFile::total_bytes() const {
    return impl_->total_bytes;
}

std::optional<std::string> GgufFile::string(std::string_view key) const {
    return impl_->first().string(key);
}

std::optional<std::uint64_t> GgufFile::integer(std::string_view key) const {
    return impl_->first().integer(key);
}

std::optional<double> GgufFile::number(std::string_view key) const {
    return impl_->first().number(key);
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
    return impl_->first().boolean(key);
}

bool GgufFile::is_array(std::string_view key) const {
    return impl_->first().is_array(key);
}

std::optional<std::size_t> GgufFile::array_size(std::string_view key) const {
    return impl_->first().array_size(key);
}

std::optional<std::vector<std::uint64_t>> GgufFile::integers(std::string_view key) const {
    return impl_->first().integers(key);
}

std::optional<std::vector<bool>> GgufFile::booleans(std::string_view key) const {
    return impl_->first().booleans(key);
}

const gguf_context* GgufFile::metadata() const {
    return impl_->first().metadata();
}

const std::vector<TensorInfo>& GgufFile::tensors() const {
    return impl_->tensors;
}

const TensorInfo* GgufFile::find(std::string_view name) const {
    const auto found = impl_->tensor_by_name.find(name);
    return found == impl_->tensor_by_name.end() ? nullptr : &impl_->tensors[found->second];
}

std::span<const std::span<const std::byte>> GgufFile::mappings() const {
    return impl_->mappings;
}

}  // namespace knap
