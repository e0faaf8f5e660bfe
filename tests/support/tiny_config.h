// The configuration of a tiny model file, or what it is refused with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/config.h"
#include "support/tiny_gguf.h"

namespace knap::test {

ModelConfig config_of(const TinyGguf& tiny);
std::string config_refusal(const TinyGguf& tiny);  // "accepted" if it is not refused

// Fields of the file's architecture.
void set_u32(TinyGguf& tiny, std::string_view field, std::uint32_t value);
void set_f32(TinyGguf& tiny, std::string_view field, float value);
void set_string(TinyGguf& tiny, std::string_view field, const char* value);
void remove(TinyGguf& tiny, std::string_view field);

}  // namespace knap::test
