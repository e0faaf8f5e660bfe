# bash completion for knap

_knap() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]-}
    local common="-v --verbose -h --help"
    local model="-m --model -hf -hfr --hf-repo -hff --hf-file -hft --hf-token --offline --adapter --device --list-devices -ngl --n-gpu-layers --rpc --rpc-timeout -fa --flash-attn -ctk --cache-type-k -ctv --cache-type-v"
    local runtime="-c --ctx-size -t --threads --cpu-mask --prio -ub --ubatch-size --exact --repack --kernels"
    local prompt="-p --prompt -f --file --raw"
    local chat="-sys --system --system-prompt --chat-template -rea --reasoning --reasoning-effort"
    local generation="-n --n-predict --predict --stop --ignore-eos --grammar-file --json-schema-file"
    local sampling="--logit-bias --repeat-penalty --frequency-penalty --presence-penalty --repeat-last-n
        --temp --temperature --top-k --top-p --min-p -s --seed"
    local speculation="--strategy --draft-max --draft-plan --plan-file --draft-width --exit-confidence --acceptance
        --strategy-options --assume-acceptance --profile --memory --show-draft"
    local server="--host --port -np --parallel --queue --cache-rows --answer-memory --idle-work -to --timeout -a --alias --strict-model
        --api-key --api-key-file --no-auth --cors-origins --chat-template --chat-template-file --no-slots --no-metrics"
    local words=""

    case $previous in
        -m | --model | --adapter | -f | --file | --prompt-cache | --grammar-file | --json-schema-file | --api-key-file | --chat-template-file | --profile | --data | --plan-file | --record | --resume | -o | --output)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
            ;;
        -fa | --flash-attn | --repack) words="auto on off" ;;
        --prio) words="-1 0 1 2 3" ;;
        --exact | --idle-work | --memory) words="on off" ;;
        -rea | --reasoning) words="auto on off" ;;
        --reasoning-effort) words="low medium high" ;;
        --reasoning-format) words="auto none" ;;
        --kernels) words="auto ggml own" ;;
        -ctk | --cache-type-k | -ctv | --cache-type-v) words="f16 f32 q8_0" ;;
        --strategy) words="autoregressive static lookup cascade knapspec knapspec-paper clasp swift del draft-verify asd layerskip kangaroo" ;;
        --peer) words="none llama ngram-simple ngram-map-k ngram-map-k4v ngram-mod ngram-cache" ;;
        --method) words="draft-verify layerskip" ;;
        --acceptance) words="shared-noise ratio equality" ;;
        --chat-template) words="chatml llama2 llama3 mistral-v1 mistral-v3 mistral-v7 gemma phi3 phi4 zephyr" ;;
        --shape)
            words="tiny-llama tiny-qwen2 tiny-qwen3 tiny-mha small-llama small-llama-96 small-llama-256 small-qwen2
                small-qwen3 tiny-ernie4.5 small-ernie4.5 tiny-granite small-granite tiny-mistral3 small-mistral3
                tiny-phi small-phi tiny-seed-oss small-seed-oss tiny-smollm3 small-smollm3 tiny-gemma2 tiny-gemma2-deep
                small-gemma2 tiny-gemma3 tiny-gemma3-deep small-gemma3 tiny-olmo2 small-olmo2 tiny-glm4 small-glm4
                tiny-exaone4 tiny-exaone4-windows small-exaone4 tiny-qwen3vl small-qwen3vl tiny-hunyuan-dense
                small-hunyuan-dense tiny-qwen3moe small-qwen3moe tiny-gpt-oss small-gpt-oss tiny-mixtral small-mixtral
                tiny-mistral3-moe small-mistral3-moe tiny-granitemoe small-granitemoe tiny-qwen3vlmoe small-qwen3vlmoe
                smollm2-135m llama-3.2-1b llama-3.2-3b llama-3.1-8b llama-3.1-70b qwen2.5-0.5b qwen3-4b qwen3-8b
                qwen3-14b qwen3-32b gemma-2-2b gemma-3-270m gemma-3-1b gemma-3-4b gemma-3-27b olmo-2-7b olmo-3-7b
                glm-4-9b exaone-4.0-1.2b exaone-4.0-32b qwen3-vl-4b hunyuan-1.8b ernie-4.5-0.3b granite-3.3-2b
                ministral-3-8b phi-4 phi-4-mini seed-oss-36b qwen3-30b-a3b gpt-oss-20b gpt-oss-120b mixtral-8x7b
                granite-3.1-3b-a800m qwen3-vl-30b-a3b smollm3-3b"
            ;;
        --type | --head-type)
            words="F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q4_K_M Q5_K Q6_K IQ4_NL IQ4_XS MXFP4 MXFP4_MOE"
            ;;
        *)
            case $command in
                run) words="$model $runtime $prompt --prompt-cache $chat --reasoning-format $generation $sampling $speculation --json --logprobs $common" ;;
                chat) words="$model $runtime $chat --reasoning-format $generation $sampling $speculation --idle-work $common" ;;
                serve) words="$server $model $runtime $generation $sampling $speculation $common" ;;
                check) words="$model $runtime --data --limit -n --n-predict --predict --tokens --record -s --seed --case --json $common" ;;
                profile) words="$model $runtime --seconds --plans -f --file -o --output --json $common" ;;
                explain) words="$model $runtime $prompt $chat -n --n-predict --predict -o --output --profile --memory --json $common" ;;
                search)
                    words="$model $runtime --method --data --limit -n --n-predict --predict --trials -s --seed
                        --exits --lengths -o --output --json $common"
                    ;;
                bench)
                    words="$model $runtime --data --strategies -n --n-predict --predict --limit --skip --max-prompt-tokens
                        -r --repeat --parallel -d -p --n-depth --n-prompt --peer --fresh-strategies --temp --temperature --top-k --top-p
                        --min-p -s --seed --acceptance --assume-acceptance --profile --memory -o --output --resume --json $common"
                    ;;
                info) words="$model --lengths --json $common" ;;
                report)
                    compopt -o filenames 2>/dev/null
                    mapfile -t COMPREPLY < <(compgen -W "-o --output -h --help" -- "$current"; compgen -f -- "$current")
                    return
                    ;;
                worker) words="--port --host --device -t --threads -h --help" ;;
                make-model) words="--shape --type --head-type --layers -s --seed -o --output -h --help" ;;
            esac
            [ "$COMP_CWORD" -eq 1 ] && words="run chat serve info check profile explain search bench report worker make-model --version -h --help"
            ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _knap knap
