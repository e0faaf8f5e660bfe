#include "tools/measure/report/bench_json.h"

#include <limits>

#include "forward/plan_text.h"

namespace knap {
namespace {

constexpr int kAnyCount = std::numeric_limits<int>::max();
constexpr double kMost = 1e15;  // ms, tokens or bytes; sums stay far from overflow
constexpr double kLeast = 1e-9;

}  // namespace

int count_in(const nlohmann::json& object, const char* name) {
    return integer_in(object, name, 0, kAnyCount);
}

int positive_count_in(const nlohmann::json& object, const char* name) {
    return integer_in(object, name, 1, kAnyCount);
}

std::int64_t large_count_in(const nlohmann::json& object, const char* name) {
    return static_cast<std::int64_t>(amount_in(object, name));
}

double amount_in(const nlohmann::json& object, const char* name) {
    return number_in(object, name, 0, kMost);
}

double positive_in(const nlohmann::json& object, const char* name) {
    return number_in(object, name, kLeast, kMost);
}

double share_in(const nlohmann::json& object, const char* name) {
    return number_in(object, name, 0, 1);
}

std::string plan_in(const nlohmann::json& object, const char* name, int n_layers) {
    std::string plan = text_in(object, name);
    parse_plan(plan, n_layers, concat("`", name, "`"));
    return plan;
}

}  // namespace knap
