// A program of libFuzzer for one target, KNAP_FUZZ_TARGET.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/log.h"
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const knap::fuzz::Target target = knap::fuzz::KNAP_FUZZ_TARGET();
    // Also forgets which warnings were written once.
    knap::set_log(knap::LogLevel::warning, [](knap::LogLevel, std::string_view) {});
    target.run({reinterpret_cast<const char*>(data), size});
    return 0;
}
