// What earlier answers said, for later ones to copy drafts from. Answers of one API key are never
// offered to another: who waits less could tell that somebody else had asked the same. Any thread
// may call any member.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "knap/types.h"

namespace knap {

class AnswerMemory {
  public:
    // Keeps up to `max_tokens` tokens for each of the `max_keys` keys that asked last. 0 tokens:
    // keeps nothing.
    explicit AnswerMemory(std::size_t max_tokens, std::size_t max_keys = 64);

    // An answer to a request with `key`. The oldest answers of the key make room for it; one that
    // is longer than everything that is kept is cut at its end.
    void add(const std::string& key, std::vector<Token> answer);
    // The answers of `key`, oldest first.
    std::vector<std::vector<Token>> answers(const std::string& key);

  private:
    struct Entry {
        std::string key;
        std::deque<std::vector<Token>> answers{};
        std::size_t n_tokens = 0;
    };
    Entry* find(const std::string& key);

    const std::size_t max_tokens_;
    const std::size_t max_keys_;
    std::mutex mutex_;
    std::list<Entry> entries_;  // the key that asked last comes first
};

}  // namespace knap
