// The baseline of every exactness test that uses Session: text from plain decoding, one pass of the
// whole model per token. A baseline that drafts proves nothing, so plain_text() fails the test when
// anything was drafted.
#pragma once

#include <span>

#include "knap/knap.h"

namespace knap::test {

// Fails the test unless `result` comes from plain decoding: the strategy is `autoregressive`,
// nothing was drafted, and every token after the first took one round.
void expect_plain_decoding(const Result& result);

// Generates with the strategy `autoregressive`, whatever strategy `options` names, and checks the
// result with expect_plain_decoding().
Result plain_text(Session& session,
                  std::span<const Token> prompt,
                  GenerateOptions options,
                  const Observer& observer = {});

}  // namespace knap::test
