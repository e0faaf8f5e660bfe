// The results of `knap check`, as a table and as a JSON object.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "tools/check/lossless_check.h"
#include "tools/check/peer_check.h"
#include "tools/check/row_check.h"
#include "tools/check/verification_error.h"

namespace knap {

struct CheckReport {
    RuntimeConfig config;
    int n_prompts = 0;
    int n_predict = 0;
    RowReport rows;
    VerificationError error;
    PeerReport peer;
    std::vector<LosslessReport> lossless;

    int n_mismatches() const;
    int n_near_ties() const;
    // Whether verifications differ from single-row passes by more than rounding explains.
    bool has_faulty_rows() const;
    bool is_ok() const { return n_mismatches() == 0 && !has_faulty_rows(); }
};

// "token 17", or "the end of the text" for none.
std::string token_text(std::optional<Token> token);

std::string to_table(const CheckReport& report);
// Scripts rely on the field names: new fields may be added, none is renamed.
nlohmann::ordered_json to_json(const CheckReport& report);

}  // namespace knap
