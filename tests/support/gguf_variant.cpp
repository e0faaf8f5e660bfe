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

void GgufVariant::add_f32(const char* name,
                          const std::vector<float>& values,
                          std::int64_t n_columns) {
    const auto n = static_cast<std::int64_t>(values.size());
    const std::int64_t sizes[] = {n_columns > 0 ? n_columns : n, n_columns > 0 ? n / n_columns : 1};
    ggml_tensor* tensor =
        ggml_new_tensor(added_.get(), GGML_TYPE_F32, n_columns > 0 ? 2 : 1, sizes);
    ggml_set_name(tensor, name);
    std::memcpy(tensor->data, values.data(), ggml_nbytes(tensor));
}

std::string GgufVariant::key(std::string_view field) const {
    const auto id = gguf_find_key(metadata_.get(), "general.architecture");
    return std::string(gguf_get_val_str(metadata_.get(), id)).append(".").append(field);
}

std::vector<std::string> GgufVariant::names() const {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(metadata_.get()); ++i) {
        names.emplace_back(gguf_get_tensor_name(metadata_.get(), i));
    }
    return names;
}

std::vector<float> GgufVariant::values(const std::string& name) const {
    const ggml_tensor* tensor = ggml_get_tensor(tensors_.get(), name.c_str());
    if (tensor == nullptr || tensor->type != GGML_TYPE_F32) {
        throw std::runtime_error("no F32 tensor " + name);
    }
    const auto* first = static_cast<const float*>(tensor->data);
    return {first, first + ggml_nelements(tensor)};
}

void GgufVariant::narrow(const std::string& name) {
    auto tensor = std::make_unique<ggml_tensor>(*ggml_get_tensor(tensors_.get(), name.c_str()));
    --tensor->ne[ggml_n_dims(tensor.get()) - 1];
    changed_[name] = std::move(tensor);
}

std::vector<const ggml_tensor*> GgufVariant::tensors() const {
    std::vector<const ggml_tensor*> list;
    for (const std::string& name : names()) {
        const auto changed = changed_.find(name);
        const ggml_tensor* tensor = changed != changed_.end()
                                        ? changed->second.get()
                                        : ggml_get_tensor(tensors_.get(), name.c_str());
        if (tensor != nullptr) {
            list.push_back(tensor);
        }
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
