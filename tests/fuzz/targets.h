// Every target. Each is defined in the file of its name.
#pragma once

#include <vector>

#include "fuzz/target.h"

namespace knap::fuzz {

Target bench_file_target();
Target chat_answer_target();
Target chat_request_target();
Target chat_template_target();
Target gguf_adapter_target();
Target gguf_model_target();
Target gguf_split_target();
Target gguf_vocabulary_target();
Target grammar_target();
Target http_request_target();
Target hub_listing_target();
Target json_schema_target();
Target plan_text_target();
Target prompt_cache_target();
Target prompt_data_target();
Target saved_files_target();
Target strategy_options_target();
Target text_request_target();
Target tokenizer_target();

inline std::vector<Target> all_targets() {
    return {bench_file_target(),    chat_answer_target(),      chat_request_target(),
            chat_template_target(), gguf_adapter_target(),     gguf_model_target(),
            gguf_split_target(),    gguf_vocabulary_target(),  grammar_target(),
            http_request_target(),  hub_listing_target(),      json_schema_target(),
            plan_text_target(),     prompt_cache_target(),     prompt_data_target(),
            saved_files_target(),   strategy_options_target(), text_request_target(),
            tokenizer_target()};
}

}  // namespace knap::fuzz
