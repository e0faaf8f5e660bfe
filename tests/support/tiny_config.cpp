#include "support/tiny_config.h"

#include "knap/types.h"

#include "model/gguf/gguf_file.h"
#include "support/tiny_model.h"

namespace knap::test {

ModelConfig config_of(const TinyGguf& tiny) {
    const std::filesystem::path path = temporary_folder() / "config.gguf";
    tiny.write(path);
    return read_config(GgufFile::open(path));
}

std::string config_refusal(const TinyGguf& tiny) {
    try {
        config_of(tiny);
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

void set_u32(TinyGguf& tiny, std::string_view field, std::uint32_t value) {
    gguf_set_val_u32(tiny.metadata(), tiny.key(field).c_str(), value);
}

void set_f32(TinyGguf& tiny, std::string_view field, float value) {
    gguf_set_val_f32(tiny.metadata(), tiny.key(field).c_str(), value);
}

void set_string(TinyGguf& tiny, std::string_view field, const char* value) {
    gguf_set_val_str(tiny.metadata(), tiny.key(field).c_str(), value);
}

void remove(TinyGguf& tiny, std::string_view field) {
    gguf_remove_key(tiny.metadata(), tiny.key(field).c_str());
}

}  // namespace knap::test
