# For the script tests; $x is the xpusim binary.

# The names of all policies, without those that stand for another one.
policies() {
    "$x" list policy | awk '$3 != "=" { print $1 }'
}

# The machine options a policy is tried with: the default machine, or for a policy that needs NPU
# graphs of fixed shapes, a phone that has them.
machine_of() {
    case $1 in
    sd-npu) echo "--soc snapdragon-8elite --llm qwen2.5-1.5b" ;;
    esac
}
