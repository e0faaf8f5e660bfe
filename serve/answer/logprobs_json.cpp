#include "serve/answer/logprobs_json.h"

#include <algorithm>

namespace knap {
namespace {

// JSON has no minus infinity.
double finite(float logprob) {
    return std::max(static_cast<double>(logprob), -9999.0);
}

Json bytes_of(const std::string& piece) {
    Json bytes = Json::array();
    for (const char byte : piece) {
        bytes.push_back(static_cast<unsigned char>(byte));
    }
    return bytes;
}

Json chat_entry(Token token, float logprob, const PieceOf& piece_of) {
    const std::string piece = piece_of(token);
    return {
        {"token", piece}, {"id", token}, {"logprob", finite(logprob)}, {"bytes", bytes_of(piece)}};
}

}  // namespace

Json chat_logprobs(std::span<const AnswerToken> tokens, const PieceOf& piece_of) {
    Json list = Json::array();
    for (const AnswerToken& token : tokens) {
        Json entry = chat_entry(token.token, token.logprob, piece_of);
        Json top = Json::array();
        for (const TokenLogprob& other : token.top) {
            top.push_back(chat_entry(other.token, other.logprob, piece_of));
        }
        entry["top_logprobs"] = std::move(top);
        list.push_back(std::move(entry));
    }
    return list;
}

Json text_logprobs(std::span<const AnswerToken> tokens,
                   const PieceOf& piece_of,
                   std::size_t offset) {
    Json pieces = Json::array();
    Json logprobs = Json::array();
    Json tops = Json::array();
    Json offsets = Json::array();
    for (const AnswerToken& token : tokens) {
        const std::string piece = piece_of(token.token);
        Json top = Json::object();
        for (const TokenLogprob& other : token.top) {
            top[piece_of(other.token)] = finite(other.logprob);
        }
        pieces.push_back(piece);
        logprobs.push_back(finite(token.logprob));
        tops.push_back(std::move(top));
        offsets.push_back(offset);
        offset += piece.size();
    }
    return {{"tokens", std::move(pieces)},
            {"token_logprobs", std::move(logprobs)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
}

}  // namespace knap
