#include "cli/check/report.h"

#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "cli/report/report.h"

namespace knap {
namespace {

using nlohmann::ordered_json;

std::string describe(const RowAgreement& rows) {
    if (rows.is_complete()) {
        return concat("all tested (up to ", rows.n_tested, ")");
    }
    return rows.n_exact == 1 ? "none" : concat("up to ", rows.n_exact);
}

std::string describe(const SamplingOptions& sampling) {
    return sampling.temperature == 0 ? "greedy" : concat("temp ", sampling.temperature);
}

double acceptance_rate(const LosslessReport& report) {
    return report.n_drafted > 0 ? static_cast<double>(report.n_accepted) / report.n_drafted : 0.0;
}

void write_rows(std::ostream& out, const RowReport& rows) {
    out << "Batch sizes that are bit-identical to single-row passes\n" << std::left;
    for (const ProductRows& product : rows.products) {
        const std::string type = concat(product.type, " ", product.layout);
        out << "  " << std::setw(16) << type << std::setw(16)
            << concat(product.n_in, " x ", product.n_out) << std::setw(15)
            << concat(product.n_matrices, product.n_matrices == 1 ? " matrix" : " matrices")
            << describe(product.rows) << '\n';
    }
    out << "  " << std::setw(47)
        << concat("passes of the whole model, attention: ", rows.attention_path)
        << describe(rows.passes) << '\n';
}

// Significant digits: the smallest difference that a float can resolve must not look like 0.
std::string describe_error(double error) {
    std::ostringstream out;
    out << std::setprecision(3) << error;
    return out.str();
}

void write_error(std::ostream& out, const CheckReport& report) {
    const VerificationError& error = report.error;
    out << "\nVerifications of up to " << error.max_rows
        << " rows compared with single-row passes, " << error.n_rows << " rows\n"
        << "  largest logit difference: chains " << describe_error(error.chains) << ", trees "
        << describe_error(error.trees) << "\n  largest change of the gap between two top logits: "
        << describe_error(error.gap_change) << "; rounding explains up to "
        << describe_error(rounding_limit(report.peer)) << "\n  a near tie is a gap below "
        << describe_error(near_tie_bound(error)) << ": the change times " << kUnmeasuredFactor
        << ", for rows not compared\n";
}

void write_distance(std::ostream& out, const char* label, const LogitDistance& distance) {
    out << "  " << std::left << std::setw(28) << label << std::right << std::setw(8)
        << format_fixed(distance.max_difference, 4) << std::setw(10)
        << format_fixed(distance.mean_difference, 5) << std::setw(12)
        << format_fixed(100 * distance.equal_choices, 2) << " %";
    if (distance.equal_choices < 1) {
        out << "; largest gap of the best two elsewhere "
            << format_fixed(distance.max_gap_of_unequal, 4);
    }
    out << '\n';
}

void write_distances(std::ostream& out, const PeerReport& peer) {
    out << "\nLogits compared with libllama, " << peer.n_rows << " rows\n"
        << "  difference                   largest      mean   same argmax\n";
    write_distance(out, "knap", peer.ours);
    write_distance(out, "libllama, flash attention", peer.flash);
}

void write_lossless(std::ostream& out, const LosslessReport& report) {
    out << "  " << std::left << std::setw(40) << report.contender.name << std::setw(10)
        << describe(report.sampling) << std::right << std::setw(4) << report.n_equal << " of "
        << std::left << std::setw(6) << report.n_prompts << std::right << std::setw(9)
        << report.near_ties.size() << std::setw(12) << report.mismatches.size() << "   "
        << format_fixed(100 * acceptance_rate(report), 1) << " % of " << report.n_drafted << '\n';
}

void write_divergences(std::ostream& out, const LosslessReport& report) {
    const auto write = [&](const Divergence& found, bool is_near_tie) {
        out << "  " << (is_near_tie ? "near tie" : "MISMATCH") << ": " << report.contender.name
            << ", " << describe(report.sampling) << ", prompt " << found.prompt << ", position "
            << found.position << ": expected " << token_text(found.expected) << ", found "
            << token_text(found.found);
        if (found.gap) {
            out << ", gap " << format_fixed(*found.gap, 4);
        }
        out << '\n';
    };
    for (const Divergence& found : report.near_ties) {
        write(found, true);
    }
    for (const Divergence& found : report.mismatches) {
        write(found, false);
    }
}

std::string verdict(const CheckReport& report) {
    if (report.has_faulty_rows()) {
        return concat("FAILED: verifications change the gap between two top logits by ",
                      describe_error(report.error.gap_change), ", more than the ",
                      describe_error(rounding_limit(report.peer)), " that rounding explains");
    }
    if (report.n_mismatches() > 0) {
        return concat("FAILED: ", report.n_mismatches(),
                      " texts differ from plain decoding at a position that is not a near tie");
    }
    return report.n_near_ties() == 0
               ? "Every strategy wrote the same text as plain decoding, token for token."
               : "Every strategy wrote the same text as plain decoding, apart from near ties.";
}

ordered_json to_json(const RowAgreement& rows) {
    return {
        {"n_exact", rows.n_exact}, {"n_tested", rows.n_tested}, {"is_exact", rows.is_complete()}};
}

ordered_json to_json(const RowReport& report) {
    auto products = ordered_json::array();
    for (const ProductRows& product : report.products) {
        products.push_back({{"type", product.type},
                            {"layout", product.layout},
                            {"n_in", product.n_in},
                            {"n_out", product.n_out},
                            {"n_matrices", product.n_matrices},
                            {"rows", to_json(product.rows)}});
    }
    return {
        {"products", products},
        {"passes", {{"attention_path", report.attention_path}, {"rows", to_json(report.passes)}}}};
}

ordered_json to_json(const VerificationError& error, const PeerReport& peer) {
    return {{"chains", error.chains},        {"trees", error.trees},
            {"largest", error.largest()},    {"gap_change", error.gap_change},
            {"limit", rounding_limit(peer)}, {"max_rows", error.max_rows},
            {"n_rows", error.n_rows}};
}

ordered_json to_json(const LogitDistance& distance) {
    return {{"max_difference", distance.max_difference},
            {"mean_difference", distance.mean_difference},
            {"max_gap_change", distance.max_gap_change},
            {"equal_choices", distance.equal_choices},
            {"max_gap_of_unequal", distance.max_gap_of_unequal}};
}

ordered_json to_json(const PeerReport& peer) {
    return {{"n_rows", peer.n_rows}, {"knap", to_json(peer.ours)}, {"flash", to_json(peer.flash)}};
}

ordered_json to_json(const std::vector<Divergence>& divergences) {
    const auto token = [](std::optional<Token> value) {
        return value ? ordered_json(*value) : ordered_json(nullptr);
    };
    auto list = ordered_json::array();
    for (const Divergence& found : divergences) {
        list.push_back({{"prompt", found.prompt},
                        {"position", found.position},
                        {"expected", token(found.expected)},
                        {"found", token(found.found)}});
        if (found.gap) {
            list.back()["gap"] = *found.gap;
        }
    }
    return list;
}

ordered_json to_json(const LosslessReport& report) {
    return {{"strategy", report.contender.speculation.strategy},
            {"draft_max", report.contender.speculation.draft_max},
            {"settings", report.contender.speculation.settings},
            {"temperature", report.sampling.temperature},
            {"seed", report.sampling.seed},
            {"n_prompts", report.n_prompts},
            {"n_equal", report.n_equal},
            {"n_tokens", report.n_tokens},
            {"n_drafted", report.n_drafted},
            {"n_accepted", report.n_accepted},
            {"acceptance_rate", acceptance_rate(report)},
            {"near_ties", to_json(report.near_ties)},
            {"mismatches", to_json(report.mismatches)}};
}

}  // namespace

std::string token_text(std::optional<Token> token) {
    return token ? concat("token ", *token) : "the end of the text";
}

int CheckReport::n_mismatches() const {
    std::size_t n = 0;
    for (const LosslessReport& report : lossless) {
        n += report.mismatches.size();
    }
    return static_cast<int>(n);
}

int CheckReport::n_near_ties() const {
    std::size_t n = 0;
    for (const LosslessReport& report : lossless) {
        n += report.near_ties.size();
    }
    return static_cast<int>(n);
}

bool CheckReport::has_faulty_rows() const {
    return !(error.gap_change <= rounding_limit(peer));  // true for NaN
}

std::string to_table(const CheckReport& report) {
    std::ostringstream out;
    out << report.config.model_path.string() << ", " << report.config.n_threads
        << (report.config.n_threads == 1 ? " thread\n\n" : " threads\n\n");
    write_rows(out, report.rows);
    write_error(out, report);
    write_distances(out, report.peer);
    out << "\nTexts compared with plain decoding, " << report.n_predict << " tokens\n  "
        << std::left << std::setw(40) << "strategy" << std::setw(10) << "sampling"
        << "equal           near ties  mismatches   accepted\n";
    for (const LosslessReport& lossless : report.lossless) {
        write_lossless(out, lossless);
    }
    for (const LosslessReport& lossless : report.lossless) {
        write_divergences(out, lossless);
    }
    out << '\n' << verdict(report) << '\n';
    return out.str();
}

ordered_json to_json(const CheckReport& report) {
    auto strategies = ordered_json::array();
    for (const LosslessReport& lossless : report.lossless) {
        strategies.push_back(to_json(lossless));
    }
    return {
        {"ok", report.is_ok()},
        {"model", report.config.model_path.string()},
        {"n_threads", report.config.n_threads},
        {"n_prompts", report.n_prompts},
        {"n_predict", report.n_predict},
        {"rows", to_json(report.rows)},
        {"libllama", to_json(report.peer)},
        {"strategies", strategies},
        {"verification_error", to_json(report.error, report.peer)},
        {"near_tie_factor", kUnmeasuredFactor},
        {"near_tie_gap", near_tie_bound(report.error)},
        {"n_near_ties", report.n_near_ties()},
        {"n_mismatches", report.n_mismatches()},
    };
}

}  // namespace knap
