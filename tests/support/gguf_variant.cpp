#include "support/gguf_variant.h"

#include <cstring>
#include <stdexcept>

#include "support/tiny_model.h"

namespace knap::test {
namespace {

void write_or_throw(const gguf_context* file, const std::filesystem::path& path) {
    if (!gguf_write_to_file(file, path.c_str(), false)) {
        throw std::runtime_error("could not write " + path.string());
    }
}

}  // namespace

GgufVariant::GgufVariant(const std::filesystem::path& path)
    : added_(ggml_init({1 << 20, nullptr, false})) {
    ggml_context* tensors = nullptr;
    metadata_.reset(gguf_init_from_file(path.c_str(), {.no_alloc = false, .ctx = &tensors}));
    tensors_.reset(tensors);
    if (metadata_ == nullptr) {
        throw std::runtime_error("could not read " + path.string());
    }
}

void GgufVariant::add_f32(const char* name, const std::vector<float>& values) {
    ggml_tensor* tensor =
        ggml_new_tensor_1d(added_.get(), GGML_TYPE_F32, static_cast<std::int64_t>(values.size()));
    ggml_set_name(tensor, name);
    std::memcpy(tensor->data, values.data(), ggml_nbytes(tensor));
}

std::vector<const ggml_tensor*> GgufVariant::tensors() const {
    std::vector<const ggml_tensor*> list;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(metadata_.get()); ++i) {
        list.push_back(ggml_get_tensor(tensors_.get(), gguf_get_tensor_name(metadata_.get(), i)));
    }
    for (auto* t = ggml_get_first_tensor(added_.get()); t != nullptr;
         t = ggml_get_next_tensor(added_.get(), t)) {
        list.push_back(t);
    }
    return list;
}

std::filesystem::path GgufVariant::write(const std::string& name) const {
    gguf_context_ptr file(gguf_init_empty());
    gguf_set_kv(file.get(), metadata_.get());
    for (const ggml_tensor* tensor : tensors()) {
        gguf_add_tensor(file.get(), tensor);
    }
    const auto path = temporary_folder() / (name + ".gguf");
    write_or_throw(file.get(), path);
    return path;
}

std::filesystem::path GgufVariant::write_split(const std::string& name) const {
    const auto all = tensors();
    const auto path_of = [&](int part) {
        return temporary_folder() / (name + "-0000" + std::to_string(part + 1) + "-of-00002.gguf");
    };
    for (std::uint16_t part = 0; part < 2; ++part) {
        gguf_context_ptr file(gguf_init_empty());
        if (part == 0) {
            gguf_set_kv(file.get(), metadata_.get());
        }
        gguf_set_val_u16(file.get(), "split.no", part);
        gguf_set_val_u16(file.get(), "split.count", 2);
        gguf_set_val_i32(file.get(), "split.tensors.count", static_cast<std::int32_t>(all.size()));
        const std::size_t half = all.size() / 2;
        for (std::size_t i = part == 0 ? 0 : half; i < (part == 0 ? half : all.size()); ++i) {
            gguf_add_tensor(file.get(), all[i]);
        }
        write_or_throw(file.get(), path_of(part));
    }
    return path_of(0);
}

}  // namespace knap::test
