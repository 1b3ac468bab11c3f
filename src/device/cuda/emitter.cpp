#include "device/cuda/emitter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <iterator>

#include "device/cuda/host_eval.h"

namespace newscaster::device::cuda {

namespace {

bool is_literal(const std::string& text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_name(const std::string& text) {
    return std::ranges::all_of(text,
                               [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// use(word, where it ends) for every name and number in a text.
template <typename Function>
void for_each_word(const std::string& text, const Function& use) {
    for (size_t at = 0; at < text.size();) {
        size_t end = at;
        while (end < text.size() && is_name(text.substr(end, 1))) ++end;
        if (end > at) use(text.substr(at, end - at), end);
        at = std::max(end, at + 1);
    }
}

// C source of the one-input operators; {0} is the operand, {1} the parameter alpha.
const std::map<std::string, const char*, std::less<>>& unary_table() {
    static const std::map<std::string, const char*, std::less<>> kTable{
        {"Identity", "({0})"},
        {"Dropout", "({0})"},
        {"Neg", "(-({0}))"},
        {"Abs", "fabsf({0})"},
        {"Sqrt", "sqrtf({0})"},
        {"Exp", "expf({0})"},
        {"Log", "logf({0})"},
        {"Sin", "sinf({0})"},
        {"Cos", "cosf({0})"},
        {"Erf", "erff({0})"},
        {"Sigmoid", "(1.0f / (1.0f + expf(-({0}))))"},
        {"Tanh", "tanhf({0})"},
        {"Relu", "fmaxf({0}, 0.0f)"},
        {"LeakyRelu", "nc_leaky({0}, {1})"},
        {"Elu", "nc_elu({0}, {1})"},
        {"Softplus", "nc_softplus({0})"},
        {"Mish", "nc_mish({0})"},
        {"Floor", "floorf({0})"},
        {"Ceil", "ceilf({0})"},
        {"Round", "rintf({0})"},
        {"Reciprocal", "(1.0f / ({0}))"},
        {"Not", "(!({0}))"}};
    return kTable;
}

// {0} and {1} are the operands.
const std::map<std::string, const char*, std::less<>>& binary_table() {
    static const std::map<std::string, const char*, std::less<>> kTable{
        {"Add", "(({0}) + ({1}))"},          {"Sub", "(({0}) - ({1}))"},
        {"Mul", "(({0}) * ({1}))"},          {"Div", "(({0}) / ({1}))"},
        {"Pow", "nc_pow({0}, {1})"},         {"Min", "nc_min({0}, {1})"},
        {"Max", "nc_max({0}, {1})"},         {"Mod", "nc_mod({0}, {1})"},
        {"PRelu", "nc_leaky({0}, {1})"},     {"And", "(({0}) && ({1}))"},
        {"Or", "(({0}) || ({1}))"},          {"Equal", "(({0}) == ({1}))"},
        {"Less", "(({0}) < ({1}))"},         {"Greater", "(({0}) > ({1}))"},
        {"LessOrEqual", "(({0}) <= ({1}))"}, {"GreaterOrEqual", "(({0}) >= ({1}))"}};
    return kTable;
}

}  // namespace

std::string c_type(DType dtype) {
    if (dtype == DType::boolean) return "int";
    if (dtype == DType::i64 || dtype == DType::i32 || dtype == DType::u8 || dtype == DType::i8) {
        return "long long";
    }
    return "float";
}

std::string storage_type(DType dtype) {
    switch (dtype) {
        case DType::f16:
            return "unsigned short";
        case DType::i64:
            return "long long";
        case DType::i32:
            return "int";
        case DType::boolean:
        case DType::u8:
            return "unsigned char";
        case DType::i8:
            return "signed char";
        default:
            return "float";
    }
}

std::string float_literal(double value) {
    const auto single = static_cast<float>(value);
    if (!std::isfinite(single)) {
        return fmt::format("__int_as_float({:#x})", std::bit_cast<uint32_t>(single));
    }
    std::string text = fmt::format("{:.9g}", single);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text.front() == '-' ? "(" + text + "f)" : text + "f";
}

std::string Emitter::fresh(std::string_view prefix) {
    std::string name = fmt::format("{}{}", prefix, counter_++);
    if (lanes_) inside_.insert(name);
    return name;
}

std::string Emitter::define(std::string_view type, const std::string& expression) {
    std::string name = fresh(type == "int" ? "i" : "t");
    write(name, fmt::format("const {} {} = {};\n", type, name, expression), expression);
    return name;
}

// The definition of a name: before the lanes, where they all agree on it.
void Emitter::write(const std::string& name, const std::string& statement,
                    const std::string& expression) {
    if (!lanes_) {
        body_ += statement;
        return;
    }
    const int64_t same = grain(expression);
    if (same == lanes_->width && loops_.empty() && !is_inside(expression)) {
        ahead_ += statement;
        inside_.erase(name);
        return;
    }
    body_ += statement;
    if (same < lanes_->width) grains_[name] = same;
}

std::string Emitter::name_int(const std::string& expression) {
    if (is_literal(expression) || is_name(expression)) return expression;
    const std::string key = "int:" + expression;
    const auto found = cache_.find(key);
    if (found != cache_.end()) return found->second;
    const LaneForm form = lanes_ ? form_of(expression) : LaneForm{};
    const std::string name = define("int", form.text.empty() ? expression : form.text);
    if (form.count > 1) forms_[name] = form;
    return cache_[key] = name;
}

// What an expression "A op B" of a name with a form and a literal becomes: shifts (as slices,
// splits and concatenations write them), and the quotients and remainders of reshapes.
Emitter::LaneForm Emitter::form_of(const std::string& expression) const {
    const size_t gap = expression.find(' ');
    if (gap == std::string::npos || expression.size() < gap + 4 || expression[gap + 2] != ' ') {
        return {};
    }
    std::string name = expression.substr(0, gap);
    std::string literal = expression.substr(gap + 3);
    const char op = expression[gap + 1];
    if (op == '+' && is_literal(name)) std::swap(name, literal);
    const auto found = forms_.find(name);
    if (found == forms_.end() || !is_literal(literal)) return {};
    const LaneForm& x = found->second;
    const int64_t number = std::stoll(literal);
    LaneForm result = x;
    if ((op == '+' || op == '-') && number % x.count == 0) {
        result.first = fmt::format("({} {} {})", x.first, op, number);
        result.shift =
            x.shift ? std::optional(*x.shift + (op == '+' ? number : -number)) : std::nullopt;
        result.text = fmt::format("{} + {}", result.first, result.part);
        return result;
    }
    result.shift.reset();
    if (number <= 0 || (number % x.count != 0 && x.count % number != 0)) return {};
    const bool whole = number % x.count == 0;
    if (op == '%') {
        result.first = whole ? fmt::format("({} % {})", x.first, number) : "0";
        if (!whole) result.part = fmt::format("({} % {})", x.part, number);
        result.count = std::min(number, x.count);
        result.text = fmt::format("{} + {}", result.first, result.part);
        return result;
    }
    if (op != '/') return {};
    result.text = whole ? fmt::format("{} / {}", x.first, number)
                        : fmt::format("{} / {} + {} / {}", x.first, number, x.part, number);
    result.count = 1;
    return result;
}

// How many neighbouring lanes have the same value of an expression.
int64_t Emitter::grain(const std::string& expression) const {
    int64_t least = lanes_->width;
    for_each_word(expression, [&](const std::string& word, size_t end) {
        const auto found = grains_.find(word);
        if (word == lanes_->lane) {
            // "u / 4" is the same for four lanes.
            const bool quotient = expression.compare(end, 3, " / ") == 0;
            const int64_t over = quotient ? std::atoll(expression.c_str() + end + 3) : 1;
            least = std::min(least, std::max<int64_t>(over, 1));
        } else if (found != grains_.end()) {
            least = std::min(least, found->second);
        }
    });
    return least;
}

// Whether it uses what is defined within the loop over lanes.
bool Emitter::is_inside(const std::string& expression) const {
    bool inside = false;
    for_each_word(expression, [&](const std::string& word, size_t) {
        inside = inside || inside_.contains(word);
    });
    return inside;
}

std::string Emitter::begin_lanes(const std::string& base, const std::string& lane, int64_t width) {
    before_lanes_ = cache_;
    lanes_ = Lanes{lane, width};
    finest_ = width;
    std::string index = define("int", fmt::format("{} + {}", base, lane));
    forms_[index] = {.text = "", .first = base, .part = lane, .count = width, .shift = 0};
    return index;
}

void Emitter::end_lanes() {
    cache_ = std::move(before_lanes_);
    lanes_.reset();
    forms_.clear();
    grains_.clear();
    inside_.clear();
    splits_.clear();
}

// One wide load for neighbouring lanes. Every lane writes the same load, of which the compiler
// keeps one; inside a loop it could not.
std::string Emitter::load_together(int value, const Indices& at) {
    const Storage& storage = plan_.storage[value];
    if (!lanes_ || at.empty() || std::ranges::find(loops_, true) != loops_.end()) return "";
    if (storage.dtype != DType::f16 && storage.dtype != DType::f32) return "";
    const auto inner = static_cast<size_t>(storage.order.back());
    const auto found = forms_.find(at[inner]);
    if (found == forms_.end()) return "";
    const LaneForm& form = found->second;
    const bool even = form.count % 2 == 0 && (form.count & (form.count - 1)) == 0;
    if (!even || form.count > 8 || storage.extents.back() % form.count != 0) return "";
    Indices first = at;
    first[inner] = form.first;
    for (size_t i = 0; i < at.size(); ++i) {
        if (i != inner && grain(at[i]) % form.count != 0) return "";
    }
    const std::string key = fmt::format("pack:{}@{}", value, fmt::join(first, ","));
    auto& name = cache_[key];
    if (name.empty()) {
        name = fresh("q");
        const std::string place = offset(value, first);
        write(name,
              fmt::format("const nc_pack<{}, {}> {} = nc_get<{}>(v{} + {});\n",
                          storage_type(storage.dtype), form.count, name, form.count, value, place),
              place);
        finest_ = std::min(finest_, form.count);
    }
    return fmt::format("{}.e[{}]", name, form.part);
}

void Emitter::hold(int value, std::map<int64_t, std::string> by_shift, const Indices& place) {
    held_ = Held{value, std::move(by_shift), {}, true};
    std::ranges::copy_if(place, std::back_inserter(held_->place),
                         [](const std::string& index) { return !index.empty(); });
}

std::string Emitter::held(const Indices& at) {
    const Shape& shape = plan_.graph.values[held_->value].shape;
    bool here = at.size() == held_->place.size() + 1;
    for (size_t i = 0; here && i < at.size(); ++i) {
        if (i != 1 && shape[i] != 1) here = at[i] == held_->place[i == 0 ? 0 : i - 1];
    }
    if (here) {
        const auto form = forms_.find(at[1]);
        if (form != forms_.end() && form->second.shift) {
            const auto found = held_->by_shift.find(*form->second.shift);
            if (found != held_->by_shift.end()) return found->second;
        }
    }
    held_->fits = false;
    return "0.0f";
}

void Emitter::open(const std::string& head) {
    body_ += head + " {\n";
    loops_.push_back(!head.empty() && !head.starts_with("if") && !head.starts_with("else"));
    saved_.push_back(cache_);
}

void Emitter::close() {
    body_ += "}\n";
    loops_.pop_back();
    cache_ = std::move(saved_.back());
    saved_.pop_back();
}

void Emitter::note_node(int node) {
    if (std::ranges::find(nodes_, node) == nodes_.end()) nodes_.push_back(node);
}

Indices Emitter::unravel(const std::string& linear, const Shape& extents) {
    Indices at(extents.size(), "0");
    std::string rest = linear;
    size_t first = 0;
    while (first < extents.size() && extents[first] == 1) ++first;
    for (size_t i = extents.size(); i > first; --i) {
        if (extents[i - 1] == 1) continue;
        at[i - 1] = i - 1 == first ? rest : name_int(fmt::format("{} % {}", rest, extents[i - 1]));
        if (i - 1 > first) rest = name_int(fmt::format("{} / {}", rest, extents[i - 1]));
    }
    return at;
}

std::string Emitter::offset(int value, const Indices& at) const {
    std::string text;
    const Storage& storage = plan_.storage[value];
    int64_t fixed = 0;
    for (size_t i = 0; i < at.size(); ++i) {
        const int64_t stride = storage.strides[i];
        if (is_literal(at[i])) {
            fixed += stride * std::stoll(at[i]);
            continue;
        }
        text += text.empty() ? "" : " + ";
        text += stride == 1 ? at[i] : fmt::format("{} * {}", at[i], stride);
    }
    if (fixed != 0 || text.empty()) text += fmt::format("{}{}", text.empty() ? "" : " + ", fixed);
    return text;
}

std::string Emitter::load(int value, const Indices& at) {
    const Value& info = plan_.graph.values[value];
    if (info.constant != nullptr && info.count() == 1) {
        const double number = to_host_array(*info.constant).values.at(0);
        if (c_type(info.dtype) == "float") return float_literal(number);
        return fmt::format("({}LL)", to_integers(to_tensor({DType::i64, {1}, {number}})).at(0));
    }
    if (held_ && held_->value == value) return held(at);
    if (std::ranges::find(reads_, value) == reads_.end()) reads_.push_back(value);
    std::string element = load_together(value, at);
    if (element.empty()) element = fmt::format("v{}[{}]", value, offset(value, at));
    if (plan_.storage[value].dtype == DType::f16) return fmt::format("nc_h2f({})", element);
    return fmt::format("({}){}", c_type(info.dtype), element);
}

std::string Emitter::value(int value, const Indices& raw) {
    Indices at;
    const Value& info = plan_.graph.values[value];
    for (size_t i = 0; i < raw.size(); ++i) {
        at.push_back(info.shape[i] == 1 ? "0" : name_int(raw[i]));
    }
    const std::string key = fmt::format("{}@{}", value, fmt::join(at, ","));
    const auto found = cache_.find(key);
    if (found != cache_.end()) return found->second;
    std::string expression;
    if (plan_.storage[value].place != Place::inlined) {
        expression = load(value, at);
    } else {
        note_node(info.producer);
        expression = compute(plan_.graph.nodes[info.producer], value, at);
    }
    const bool literal = info.constant != nullptr && info.count() == 1;
    if (!literal) expression = define(c_type(info.dtype), expression);
    return cache_[key] = expression;
}

std::string Emitter::root(int value, const Indices& at) {
    const Value& info = plan_.graph.values[value];
    note_node(info.producer);
    Indices named;
    for (size_t i = 0; i < at.size(); ++i) {
        named.push_back(info.shape[i] == 1 ? "0" : name_int(at[i]));
    }
    return define(c_type(info.dtype), compute(plan_.graph.nodes[info.producer], value, named));
}

std::string Emitter::operand(const Node& node, size_t input, const Indices& at) {
    const int from = node.input(input);
    const Shape& shape = plan_.graph.values[from].shape;
    return value(from, Indices(at.end() - static_cast<int64_t>(shape.size()), at.end()));
}

std::string Emitter::compute(const Node& node, int value, const Indices& at) {
    const std::string& op = node.op;
    if (unary_table().contains(op) || binary_table().contains(op) || op == "Where" ||
        op == "Clip" || op == "Gelu" || op == "HardSigmoid") {
        return pointwise(node, at);
    }
    if (op == "Cast") return cast(node, value, at);
    if (op == "Concat") return concat(node, value, at);
    if (op == "Pad") return pad(node, value, at);
    if (op == "Gather") return gather(node, at);
    if (op == "Resize") return resize(node, value, at);
    if (op.starts_with("GridSample")) return grid_sample(node, value, at);
    if (op == "Conv") return conv(node, value, at);
    if (op == "AveragePool" || op == "MaxPool") return pool(node, at);
    if (op == "MatMul" || op == "Gemm") return matmul(node, value, at);
    if (op.starts_with("Reduce") || op == "GlobalAveragePool") return reduce(node, value, at);
    if (op == "BatchNormalization") return batch_norm(node, at);
    if (op == "InstanceApply") return instance_apply(node, at);
    if (op == "TapSum") return tap_sum(node, at);
    return moved(node, value, at);
}

std::string Emitter::pointwise(const Node& node, const Indices& at) {
    const std::string& op = node.op;
    if (op == "Where") {
        return fmt::format("({} ? {} : {})", operand(node, 0, at), operand(node, 1, at),
                           operand(node, 2, at));
    }
    const std::string x = operand(node, 0, at);
    if (op == "Clip") {
        const auto bound = [&](size_t i, const char* name, double otherwise) {
            if (node.input(i) != kAbsent) return operand(node, i, {});
            return float_literal(
                static_cast<double>(node.number(name, static_cast<float>(otherwise))));
        };
        return fmt::format("nc_min(nc_max({}, {}), {})", x, bound(1, "min", -INFINITY),
                           bound(2, "max", INFINITY));
    }
    if (op == "Gelu") {
        return fmt::format(
            "{}({})", node.text("approximate", "none") == "tanh" ? "nc_gelu_tanh" : "nc_gelu", x);
    }
    if (op == "HardSigmoid") {
        return fmt::format("__saturatef({} * {} + {})", x,
                           float_literal(static_cast<double>(node.number("alpha", 0.2F))),
                           float_literal(static_cast<double>(node.number("beta", 0.5F))));
    }
    const auto unary = unary_table().find(op);
    if (unary != unary_table().end()) {
        const float otherwise = op == "Elu" ? 1.0F : 0.01F;
        return fmt::format(fmt::runtime(unary->second), x,
                           float_literal(static_cast<double>(node.number("alpha", otherwise))));
    }
    std::string result = x;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        result = fmt::format(fmt::runtime(binary_table().find(op)->second), result,
                             operand(node, i, at));
    }
    return result;
}

std::string Emitter::cast(const Node& node, int value, const Indices& at) {
    const std::string x = operand(node, 0, at);
    const DType to = plan_.graph.values[value].dtype;
    if (to == DType::boolean) return fmt::format("(({}) != 0)", x);
    if (to == DType::i32) return fmt::format("(long long)(int)({})", x);
    return fmt::format("({})({})", c_type(to), x);
}

}  // namespace newscaster::device::cuda
