#include <string.h>

#include "base/str.h"
#include "load.h"

static bool add(struct message *m, const char *text)
{
    size_t len = strlen(text);
    if (len > sizeof m->bytes - m->len)
        return false;
    memcpy(m->bytes + m->len, text, len);
    m->len += len;
    return true;
}

static bool find_holes(struct message *m)
{
    for (size_t i = 0; i < m->len;) {
        size_t digits = 0;
        while (i + digits < m->len && m->bytes[i + digits] == '#')
            digits++;
        if (digits) {
            if (m->hole_count == HOLES_MAX)
                return false;
            m->holes[m->hole_count++] = (struct hole){i, digits};
        }
        i += digits ? digits : 1;
    }
    return true;
}

bool message_write(struct message *m, const struct message_parts *parts)
{
    char length[64] = "";
    if (parts->body)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(parts->body));
    *m = (struct message){.len = 0};
    bool fits = add(m, parts->method) && add(m, " ") && add(m, parts->path) && add(m, " HTTP/1.1\r\nHost: ") &&
                add(m, parts->host) && add(m, "\r\n") && add(m, length);
    for (size_t i = 0; fits && i < parts->header_count; i++)
        fits = add(m, parts->headers[i]) && add(m, "\r\n");
    return fits && add(m, "\r\n") && add(m, parts->body ? parts->body : "") && find_holes(m);
}

void message_number(struct message *m, uint64_t number)
{
    for (size_t i = 0; i < m->hole_count; i++) {
        uint64_t rest = number;
        for (size_t digit = m->holes[i].digits; digit > 0; digit--, rest /= 10)
            m->bytes[m->holes[i].at + digit - 1] = (char)('0' + rest % 10);
    }
}

static bool read_field(struct str line, struct head *head)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon)
        return false;
    struct str name = {line.at, (size_t)(colon - line.at)};
    struct str value = str_trim((struct str){colon + 1, line.len - name.len - 1});
    int64_t len;
    if (str_eq_nocase(name, STR("Content-Length"))) {
        if (str_to_i64(value, 0, INT32_MAX, &len))
            return false;
        head->body_len = (size_t)len;
    }
    if (str_eq_nocase(name, STR("Connection")) && str_eq_nocase(value, STR("close")))
        head->last = true;
    return !str_eq_nocase(name, STR("Transfer-Encoding")); /* not supported: no benchmark needs it */
}

int head_read(const char *bytes, size_t len, struct head *ret, size_t *ret_len)
{
    const char *end = memmem(bytes, len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    struct head head = {0};
    int64_t status;
    if (end - bytes < 12 || memcmp(bytes, "HTTP/1.1 ", 9) != 0 ||
        str_to_i64((struct str){bytes + 9, 3}, 100, 599, &status))
        return -1;
    head.status = (int)status;

    const char *line = memmem(bytes, len, "\r\n", 2);
    while (line < end) {
        line += 2;
        const char *next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        if (!read_field((struct str){line, (size_t)(next - line)}, &head))
            return -1;
        line = next;
    }
    *ret = head;
    *ret_len = (size_t)(end - bytes) + 4;
    return 1;
}
