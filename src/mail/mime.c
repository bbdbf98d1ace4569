/* A mail as bytes: headers that no value can break out of, and two bodies that every relay passes on unchanged. */
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "mail/inside.h"

/* Encoded in base64 this fits into a word of 75 characters with its frame (RFC 2047, 2). */
#define ENCODED_WORD_BYTES 45
#define QUOTED_LINE_MAX 76

static bool is_plain(const char *z)
{
    for (const char *at = z; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
            return false;
    return !strstr(z, "=?"); /* otherwise a mail reader would decode it */
}

/* "=?UTF-8?B?…?=" as often as needed, each of whole characters. */
static void add_encoded(struct buf *out, struct str text)
{
    while (text.len) {
        size_t len = 0, next;
        while ((next = str_utf8_len((struct str){text.at + len, text.len - len})) && len + next <= ENCODED_WORD_BYTES)
            len += next;
        if (len == 0)
            return; /* not UTF-8: mail_from_parse() and mail_write() refuse that */
        char word[sodium_base64_ENCODED_LEN(ENCODED_WORD_BYTES, sodium_base64_VARIANT_ORIGINAL)];
        sodium_bin2base64(word, sizeof word, (const unsigned char *)text.at, len, sodium_base64_VARIANT_ORIGINAL);
        text = (struct str){text.at + len, text.len - len};
        buf_addf(out, "=?UTF-8?B?%s?=%s", word, text.len ? "\r\n " : "");
    }
}

static void add_quoted(struct buf *out, const char *z)
{
    buf_addz(out, "\"");
    for (; *z; z++) {
        if (*z == '"' || *z == '\\')
            buf_addz(out, "\\");
        buf_add(out, (struct str){z, 1});
    }
    buf_addz(out, "\"");
}

void mime_add_from(struct buf *out, const struct mail_from *from, bool for_header)
{
    if (!*from->name) {
        buf_addz(out, from->address);
        return;
    }
    if (for_header && !is_plain(from->name))
        add_encoded(out, str_of(from->name));
    else if (strpbrk(from->name, "()<>[]:;@\\,.\""))
        add_quoted(out, from->name);
    else
        buf_addz(out, from->name);
    buf_addf(out, " <%s>", from->address);
}

static void add_date(struct buf *out, int64_t wall_us)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm t;
    if (!gmtime_r(&seconds, &t))
        return;
    buf_addf(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[t.tm_wday], t.tm_mday, months[t.tm_mon],
             t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

void mime_add_quoted_printable(struct buf *out, struct str text)
{
    size_t column = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool line_ends = c == '\r' && i + 1 < text.len && text.at[i + 1] == '\n';
        if (line_ends) {
            buf_addz(out, "\r\n");
            column = 0;
            i++;
            continue;
        }
        bool last = i + 1 == text.len || text.at[i + 1] == '\r';
        bool plain = (c > ' ' && c <= '~' && c != '=') || (c == ' ' && !last);
        size_t width = plain ? 1 : 3;
        if (column + width >= QUOTED_LINE_MAX) {
            buf_addz(out, "=\r\n");
            column = 0;
        }
        if (plain)
            buf_add(out, (struct str){text.at + i, 1});
        else
            buf_addf(out, "=%02X", c);
        column += width;
    }
}

/* "=_" occurs in no quoted-printable text, so no part can hold the boundary. */
static void add_part(struct buf *out, const char *key, const char *type, const struct buf *text)
{
    buf_addf(out,
             "--=_%s\r\n"
             "Content-Type: %s; charset=utf-8\r\n"
             "Content-Transfer-Encoding: quoted-printable\r\n"
             "\r\n",
             key, type);
    mime_add_quoted_printable(out, buf_str(text));
    buf_addz(out, "\r\n");
}

void mime_write(struct buf *out, const struct mime_message *m)
{
    const char *domain = strrchr(m->from->address, '@');
    buf_addz(out, "From: ");
    mime_add_from(out, m->from, true);
    buf_addf(out, "\r\nTo: %s\r\nSubject: ", m->mail->to);
    if (is_plain(m->mail->subject))
        buf_addz(out, m->mail->subject);
    else
        add_encoded(out, str_of(m->mail->subject));
    buf_addz(out, "\r\n");
    add_date(out, m->date_us);
    buf_addf(out,
             "Message-ID: <%s%s>\r\n"
             "Auto-Submitted: auto-generated\r\n"
             "MIME-Version: 1.0\r\n"
             "Content-Type: multipart/alternative; boundary=\"=_%s\"\r\n"
             "\r\n",
             m->key, domain ? domain : "@localhost", m->key);
    add_part(out, m->key, "text/plain", &m->mail->text);
    add_part(out, m->key, "text/html", &m->mail->html);
    buf_addf(out, "--=_%s--\r\n", m->key);
}
