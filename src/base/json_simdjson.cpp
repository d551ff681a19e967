/* The reader of json.h over simdjson's DOM, and the shortest text of doubles. The only C++ file: no exception may leave
 * it, so only simdjson's error codes are used and every function is noexcept. */
#include <charconv>
#include <cmath>
#include <cstring>
#include <new>
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
extern "C" {
#include "base/json.h"
#include "base/json_mend.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/utf8.h"
}
#pragma GCC diagnostic pop

namespace dom = simdjson::dom;
namespace ondemand = simdjson::ondemand;

/* A simdjson handle is a document and an index into its tape: the two members of struct json_value. */
template <class Handle> static Handle handle_of(json_value v) noexcept
{
    static_assert(sizeof(Handle) == sizeof(json_value) && std::is_trivially_copyable_v<Handle>);
    Handle handle;
    std::memcpy(static_cast<void *>(&handle), &v, sizeof v);
    return handle;
}

template <class Handle> static json_value value_of(const Handle &handle) noexcept
{
    static_assert(sizeof(Handle) == sizeof(json_value) && std::is_trivially_copyable_v<Handle>);
    json_value v;
    std::memcpy(&v, static_cast<const void *>(&handle), sizeof v);
    return v;
}

/* Reads v as T; false when v is absent or of another type. */
template <class T> static bool get_as(json_value v, T &ret) noexcept
{
    return v.doc && handle_of<dom::element>(v).get(ret) == simdjson::SUCCESS;
}

/* The DOM does not record where parsing stopped, so after a failure simdjson's On-Demand front end walks the text
 * again. On-Demand leaves the limit of the depth to its caller. */
static simdjson::error_code walk_to_error(ondemand::value v, size_t depth) noexcept;

static simdjson::error_code walk_array(ondemand::array array, size_t depth) noexcept
{
    for (auto item : array) {
        ondemand::value value;
        auto error = std::move(item).get(value);
        if (!error)
            error = walk_to_error(value, depth);
        if (error)
            return error;
    }
    return simdjson::SUCCESS;
}

static simdjson::error_code walk_object(ondemand::object object, size_t depth) noexcept
{
    for (auto member : object) {
        std::string_view key;
        ondemand::value value;
        auto error = member.unescaped_key().get(key);
        if (!error)
            error = member.value().get(value);
        if (!error)
            error = walk_to_error(value, depth);
        if (error)
            return error;
    }
    return simdjson::SUCCESS;
}

static simdjson::error_code walk_to_error(ondemand::value v, size_t depth) noexcept
{
    ondemand::json_type type;
    ondemand::array array;
    ondemand::object object;
    ondemand::number number;
    std::string_view string;
    bool boolean;
    auto error = v.type().get(type);

    if (error)
        return error;
    if (depth > LIMIT_JSON_DEPTH)
        return simdjson::DEPTH_ERROR;
    switch (type) {
    case ondemand::json_type::array:
        error = v.get_array().get(array);
        return error ? error : walk_array(array, depth + 1);
    case ondemand::json_type::object:
        error = v.get_object().get(object);
        return error ? error : walk_object(object, depth + 1);
    case ondemand::json_type::string:
        return v.get_string().get(string);
    case ondemand::json_type::number:
        return v.get_number().get(number);
    case ondemand::json_type::boolean:
        return v.get_bool().get(boolean);
    default:
        return v.is_null().error();
    }
}

/* Byte offset of the failure; -1 when simdjson does not report one. */
static ptrdiff_t find_error(const char *padded, size_t n) noexcept
{
    ondemand::parser parser;
    ondemand::document document;
    ondemand::value root;
    const char *at;

    if (parser.allocate(n, 2 * LIMIT_JSON_DEPTH) ||
        parser.iterate(padded, n, n + simdjson::SIMDJSON_PADDING).get(document) || document.get_value().get(root) ||
        walk_to_error(root, 0) == simdjson::SUCCESS || document.current_location().get(at))
        return -1;
    return at >= padded && at <= padded + n ? at - padded : -1;
}

static ptrdiff_t find_bad_utf8(struct slice text) noexcept
{
    size_t at = 0;

    while (at < text.n) {
        size_t n = utf8_char_bytes(slice{text.p + at, text.n - at});
        if (n == 0)
            return static_cast<ptrdiff_t>(at);
        at += n;
    }
    return -1;
}

static const char *error_reason(simdjson::error_code error) noexcept
{
    switch (error) {
    case simdjson::EMPTY:
        return "it is empty";
    case simdjson::UTF8_ERROR:
        return "it is not UTF-8";
    case simdjson::UNCLOSED_STRING:
        return "a string is not closed";
    case simdjson::UNESCAPED_CHARS:
        return "a string holds a control character that must be escaped";
    case simdjson::STRING_ERROR:
        return "a string holds a wrong escape";
    case simdjson::NUMBER_ERROR:
        return "a number is malformed, or too large for a double";
    case simdjson::T_ATOM_ERROR:
    case simdjson::F_ATOM_ERROR:
    case simdjson::N_ATOM_ERROR:
        return "a word is neither true, false nor null";
    default:
        return "a comma, colon, bracket, brace or value is missing or superfluous";
    }
}

static struct buf mend(struct slice text) noexcept
{
    struct buf out;

    buf_init(&out, 2 * text.n + 16);    /* at most two bytes for twenty */
    json_mend(text, &out, SIZE_MAX);
    return out;
}

/* The position in the original text of the byte `at` of the mended text. */
static ptrdiff_t place_in(struct slice text, ptrdiff_t at) noexcept
{
    struct buf out;
    size_t place;

    buf_init(&out, 2 * text.n + 16);
    place = json_mend(text, &out, static_cast<size_t>(at));
    buf_clear(&out);
    return static_cast<ptrdiff_t>(place);
}

/* padded: the original text or the mended text. */
static int emit_error(simdjson::error_code error, const simdjson::padded_string &padded, struct slice text, struct err *e) noexcept
{
    size_t n = padded.size();
    ptrdiff_t at;

    if (error == simdjson::CAPACITY || error == simdjson::MEMALLOC)
        return memory_refuse(e);
    if (error == simdjson::DEPTH_ERROR)
        return err_set(e, -EINVAL, "INVALID_JSON", "The JSON is nested deeper than %d levels", LIMIT_JSON_DEPTH);
    if (!e)
        return -EINVAL;
    at = error == simdjson::UTF8_ERROR ? find_bad_utf8(slice{padded.data(), n}) : find_error(padded.data(), n);
    if (at >= 0 && n != text.n)
        at = place_in(text, at);
    if (at < 0)
        return err_set(e, -EINVAL, "INVALID_JSON", "This is not valid JSON: %s", error_reason(error));
    return err_set(e, -EINVAL, "INVALID_JSON", "This is not valid JSON: %s, near byte %td", error_reason(error), at);
}

/* Checked before anything is allocated: small values cost many times their text. Commas and brackets within strings are
 * counted as well. */
static bool has_too_many_values(struct slice text) noexcept
{
    size_t n = 0;

    if (text.n <= LIMIT_JSON_VALUES)
        return false;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == ',' || (text.p[i] | 0x20) == '{';     /* [ and { */
    return n > LIMIT_JSON_VALUES;
}

static void document_clear(void *document) noexcept
{
    static_cast<dom::document *>(document)->~document();
}

/* The tape's first word holds its length; the strings are at most as long as the text that was read. The rest of both
 * buffers is never touched. */
static size_t document_bytes(const dom::document &document, size_t n_text) noexcept
{
    return (document.tape[0] & simdjson::internal::JSON_VALUE_MASK) * sizeof(document.tape[0]) + n_text;
}

/* What one call of json_parse() needs in addition to the document. It lives for this call only: making one costs 0.07
 * us, while one kept for each thread would hold memory. */
struct parsing {
    dom::parser parser;
    simdjson::padded_string padded;
    dom::element root;
};

static simdjson::error_code parse_once(struct parsing *p, struct slice text, dom::document &document) noexcept
{
    simdjson::error_code error;

    p->padded = simdjson::padded_string(text.p, text.n);
    if (!p->padded.data() && text.n > 0)
        return simdjson::MEMALLOC;
    error = p->parser.allocate(MAX(text.n, dom::MINIMAL_DOCUMENT_CAPACITY), LIMIT_JSON_DEPTH + 1);
    return error ? error : p->parser.parse_into_document(document, p->padded).get(p->root);
}

/* A small text waits briefly for memory, like other small allocations; a large text is refused. */
static simdjson::error_code parse_text(struct parsing *p, struct slice text, dom::document &document) noexcept
{
    simdjson::error_code error;
    unsigned n_tries = 0;

    do
        error = parse_once(p, text, document);
    while (error == simdjson::MEMALLOC && text.n <= MEMORY_LARGE_BYTES && memory_wait(&n_tries));
    return error;
}

extern "C" int json_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e)
{
    if (has_too_many_values(text))
        return err_set(e, -E2BIG, "BODY_TOO_LARGE", "The JSON must have at most %d values", LIMIT_JSON_VALUES);
    struct parsing p;
    auto *document = new (arena_alloc(a, sizeof(dom::document))) dom::document;
    simdjson::error_code error;

    arena_defer(a, document_clear, document);
    error = parse_text(&p, text, *document);
    if (error == simdjson::STRING_ERROR || error == simdjson::NUMBER_ERROR) {
        struct buf mended = mend(text);
        error = parse_text(&p, buf_slice(&mended), *document);
        buf_clear(&mended);
    }
    if (error)
        return emit_error(error, p.padded, text, e);
    arena_count(a, document_bytes(*document, p.padded.size()));
    *ret = value_of(p.root);
    return 0;
}

extern "C" int json_copy(struct arena *a, struct json_value v, struct json_value *ret, struct err *e)
{
    struct buf text;
    int r = 0;

    buf_init(&text, LIMIT_REPLY);
    json_print(&text, v);
    r = buf_check(&text, e);
    if (r == 0)
        r = json_parse(a, buf_slice(&text), ret, e);
    buf_clear(&text);
    return r;
}

extern "C" enum json_type json_type(struct json_value v)
{
    if (!v.doc)
        return JSON_ABSENT;
    switch (handle_of<dom::element>(v).type()) {
    case dom::element_type::ARRAY:
        return JSON_ARRAY;
    case dom::element_type::OBJECT:
        return JSON_OBJECT;
    case dom::element_type::INT64:
        return JSON_INT;
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
        return JSON_DOUBLE;
    case dom::element_type::STRING:
        return JSON_STRING;
    case dom::element_type::BOOL:
        return JSON_BOOL;
    default:
        return JSON_NULL;
    }
}

extern "C" struct json_value json_get(struct json_value v, const char *name)
{
    dom::object object;
    dom::element member;

    if (!get_as(v, object) || object.at_key(name).get(member))
        return json_value{};
    return value_of(member);
}

/* The tape's counters end at this value; the elements of larger containers are counted one by one. */
static constexpr size_t TAPE_COUNT_MAX = 0xFFFFFF;

template <class Container> static size_t count_of(const Container &container) noexcept
{
    size_t n = container.size();

    if (n < TAPE_COUNT_MAX)
        return n;
    n = 0;
    for (auto at = container.begin(); at != container.end(); ++at)
        n++;
    return n;
}

extern "C" size_t json_length(struct json_value v)
{
    dom::array array;
    dom::object object;

    if (get_as(v, array))
        return count_of(array);
    return get_as(v, object) ? count_of(object) : 0;
}

extern "C" int64_t json_int(struct json_value v)
{
    int64_t i;
    return get_as(v, i) ? i : 0;
}

extern "C" bool json_read_uint(struct json_value v, uint64_t *ret)
{
    return get_as(v, *ret);
}

extern "C" double json_double(struct json_value v)
{
    double d;
    return get_as(v, d) ? d : 0.0;
}

extern "C" bool json_bool(struct json_value v)
{
    bool b;
    return get_as(v, b) && b;
}

extern "C" struct slice json_string(struct json_value v)
{
    std::string_view s;
    return get_as(v, s) ? slice{s.data(), s.size()} : slice{"", 0};
}

extern "C" const char *json_cstr(struct json_value v)
{
    std::string_view s;

    if (!get_as(v, s) || std::memchr(s.data(), 0, s.size()))
        return nullptr;
    return s.data();
}

extern "C" size_t json_read_floats(struct json_value v, float *out, size_t n)
{
    dom::array array;
    size_t i = 0;
    double number;

    if (!get_as(v, array))
        return 0;
    for (auto at = array.begin(); i < n && at != array.end(); ++at, i++) {
        if ((*at).get_double().get(number) || !std::isfinite(out[i] = static_cast<float>(number)))
            break;
    }
    return i;
}

extern "C" struct json_iter json_iter(struct json_value v)
{
    dom::array array;
    dom::object object;

    if (get_as(v, array))
        return {value_of(array.begin()), value_of(array.end()), false};
    if (get_as(v, object))
        return {value_of(object.begin()), value_of(object.end()), true};
    return {};
}

extern "C" bool json_next(struct json_iter *it, struct slice *ret_key, struct json_value *ret_value)
{
    std::string_view key = "";

    if (it->at.at >= it->end.at)
        return false;
    if (it->is_object) {
        auto at = handle_of<dom::object::iterator>(it->at);
        key = at.key();
        *ret_value = value_of(at.value());
        it->at = value_of(++at);
    } else {
        auto at = handle_of<dom::array::iterator>(it->at);
        *ret_value = value_of(*at);
        it->at = value_of(++at);
    }
    if (ret_key)
        *ret_key = slice{key.data(), key.size()};
    return true;
}

/* On the tape the name of a member is the word before its value. */
extern "C" struct slice json_name_of(struct json_value member)
{
    return json_string(json_value{member.doc, member.at - 1});
}

template <class Integer> static void print_integer(struct buf *out, Integer i) noexcept
{
    char text[24];
    auto end = std::to_chars(text, text + sizeof text, i).ptr;
    buf_add(out, text, static_cast<size_t>(end - text));
}

static void print_container(struct buf *out, json_value v, char open, char close) noexcept
{
    struct json_iter it = json_iter(v);
    struct slice key;
    json_value item;
    bool is_first = true;

    buf_add_char(out, open);
    while (!out->overflowed && json_next(&it, &key, &item)) {
        if (!is_first)
            buf_add_char(out, ',');
        is_first = false;
        if (it.is_object) {
            json_quote(out, key);
            buf_add_char(out, ':');
        }
        json_print(out, item);
    }
    buf_add_char(out, close);
}

static void print_double(struct buf *out, double d) noexcept
{
    char text[32];
    buf_add(out, text, json_format_double(text, d));
}

extern "C" void json_print(struct buf *out, struct json_value v)
{
    uint64_t u;

    switch (json_type(v)) {
    case JSON_BOOL:
        return buf_add_str(out, json_bool(v) ? "true" : "false");
    case JSON_INT:
        return print_integer(out, json_int(v));
    case JSON_DOUBLE:
        return handle_of<dom::element>(v).is_uint64() && get_as(v, u) ? print_integer(out, u)
                                                                      : print_double(out, json_double(v));
    case JSON_STRING:
        return json_quote(out, json_string(v));
    case JSON_ARRAY:
        return print_container(out, v, '[', ']');
    case JSON_OBJECT:
        return print_container(out, v, '{', '}');
    default:
        return buf_add_str(out, "null");
    }
}

template <class Real> static size_t format_real(char *out, Real d) noexcept
{
    /* From here on the plain form would be an integer beyond 64 bits, which some readers refuse. */
    constexpr Real PLAIN_END = 9223372036854775808.0;
    enum { ROOM = 31 };
    char *end;

    if (!std::isfinite(d))
        end = static_cast<char *>(std::memcpy(out, "null", 4)) + 4;
    else if (d == 0 && std::signbit(d))
        end = static_cast<char *>(std::memcpy(out, "-0.0", 4)) + 4;
    else if (std::fabs(d) >= PLAIN_END)
        end = std::to_chars(out, out + ROOM, d, std::chars_format::scientific).ptr;
    else
        end = std::to_chars(out, out + ROOM, d).ptr;
    *end = '\0';
    return static_cast<size_t>(end - out);
}

extern "C" size_t json_format_double(char *out, double d)
{
    return format_real(out, d);
}

extern "C" size_t json_format_float(char *out, float f)
{
    return format_real(out, f);
}
