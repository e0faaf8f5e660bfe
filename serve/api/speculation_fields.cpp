#include "serve/api/speculation_fields.h"

#include <algorithm>

#include "knap/knap.h"

#include "base/quoted.h"
#include "serve/api/error.h"
#include "serve/api/fields.h"

namespace knap {
namespace {

void read_strategy(Fields& fields, SpeculationOptions& speculation) {
    const auto name = fields.string("strategy");
    if (!name || *name == speculation.strategy) {
        return;
    }
    if (std::ranges::find(strategies(), *name, &StrategyInfo::name) == strategies().end()) {
        bad_field("knap.strategy", "expected ", join(strategies(), ", ", &StrategyInfo::name),
                  ", found ", in_quotes(*name));
    }
    speculation = {.strategy = *name, .acceptance = speculation.acceptance};
}

// Text as on the command line: true is "on".
std::string setting_text(const std::string& key, const Json& value) {
    if (value.is_string()) {
        return value.get<std::string>();
    }
    if (value.is_boolean()) {
        return value.get<bool>() ? "on" : "off";
    }
    if (!value.is_number()) {
        bad_field(concat("knap.strategy_options.", key), "expected a string or a number, found ",
                  kind_of(value));
    }
    return to_text(value);
}

void read_settings(Fields& fields, StrategySettings& settings) {
    const Json* value = fields.find("strategy_options");
    if (value == nullptr) {
        return;
    }
    if (value->is_string()) {
        try {
            // In place of the server's own defaults of these names.
            for (const auto& [key, text] : parse_settings(value->get<std::string>())) {
                settings.insert_or_assign(key, text);
            }
        } catch (const Error& error) {
            bad_field("knap.strategy_options", error.what());
        }
        return;
    }
    if (!value->is_object()) {
        bad_field("knap.strategy_options", "expected an object or \"KEY=VALUE,...\", found ",
                  kind_of(*value));
    }
    for (const auto& [key, one] : value->items()) {
        settings.insert_or_assign(key, setting_text(key, one));
    }
}

void read_acceptance(Fields& fields, SpeculationOptions& speculation) {
    const auto name = fields.string("acceptance");
    if (!name) {
        return;
    }
    if (*name == "shared_noise") {
        speculation.acceptance = AcceptanceRule::shared_noise;
    } else if (*name == "ratio") {
        speculation.acceptance = AcceptanceRule::ratio;
    } else if (*name == "equality") {
        speculation.acceptance = AcceptanceRule::equality;
    } else {
        bad_field("knap.acceptance", "expected shared_noise, ratio or equality, found ",
                  in_quotes(*name));
    }
}

}  // namespace

void read_speculation(const Json& object, GenerationRequest& request) {
    SpeculationOptions& speculation = request.options.speculation;
    Fields fields(object, "knap.");
    read_strategy(fields, speculation);
    read_settings(fields, speculation.settings);
    fields.read("draft_max", speculation.draft_max, {.min = 0, .max = kMaxDraft});
    if (const auto plan = fields.string("draft_plan")) {
        speculation.settings.insert_or_assign("plan", *plan);
    }
    if (const auto width = fields.integer("draft_width", {.min = 1, .max = kMaxDraftWidth})) {
        speculation.settings.insert_or_assign("width", concat(*width));
    }
    if (const auto confidence = fields.number("exit_confidence", {.min = 0, .max = 1})) {
        speculation.settings.insert_or_assign("exit-confidence", concat(*confidence));
    }
    read_acceptance(fields, speculation);
    fields.read("decisions", request.wants_decisions);
    fields.read("rounds", request.wants_rounds);
    const std::vector<std::string> unknown = fields.unknown();
    if (!unknown.empty()) {
        bad_field(concat("knap.", unknown.front()),
                  "expected strategy, strategy_options, draft_max, draft_plan, draft_width, "
                  "exit_confidence, acceptance, decisions or rounds");
    }
}

}  // namespace knap
