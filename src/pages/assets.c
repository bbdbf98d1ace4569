#include "pages/assets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "http/router.h"

#define ADDED_MAX 4

static struct asset added[ADDED_MAX];
static size_t added_count;

enum err asset_add(const char *name, const char *type, struct str content, struct why *why)
{
    char hex[DIGEST_HEX_LEN + 1], address[200];
    struct digest digest = digest_sha256(content);
    digest_hex(&digest, hex);
    const char *dot = strrchr(name, '.');
    snprintf(address, sizeof address, "/assets/%.*s-%.10s%s", (int)(dot - name), name, hex, dot);
    char *bytes = malloc(content.len ? content.len : 1), *copy = strdup(address);
    if (!bytes || !copy || added_count == ADDED_MAX) {
        free(bytes);
        free(copy);
        return why_set(why, ERR_MEMORY, "out of memory");
    }
    memcpy(bytes, content.at, content.len);
    added[added_count++] = (struct asset){.name = name, .address = copy, .type = type, .plain = {bytes, content.len}};
    /* cppcheck-suppress memleak ; assets_free() */
    return OK;
}

void assets_free(void)
{
    for (; added_count; added_count--) {
        free((char *)(uintptr_t)added[added_count - 1].address);
        free((char *)(uintptr_t)added[added_count - 1].plain.at);
    }
}

static const struct asset *find(struct str text, bool by_address)
{
    for (size_t i = 0; i < built_in_asset_count + added_count; i++) {
        const struct asset *a = i < built_in_asset_count ? &built_in_assets[i] : &added[i - built_in_asset_count];
        if (str_eq(text, str_of(by_address ? a->address : a->name)))
            return a;
    }
    return NULL;
}

const char *asset_address(const char *name)
{
    const struct asset *a = find(str_of(name), false);
    return a ? a->address : NULL;
}

bool encoding_is_accepted(struct str encodings, struct str wanted)
{
    struct str one, name, weight;
    while (str_split(&encodings, ',', &one)) {
        if (!str_split(&one, ';', &name) || !str_eq_nocase(str_trim(name), wanted))
            continue;
        weight = one.at ? str_trim(one) : STR("");
        return !str_eq(weight, STR("q=0")) && !str_starts(weight, STR("q=0.0"));
    }
    return false;
}

void asset_handle(struct request *rq)
{
    const struct asset *a = find(rq->path, true);
    if (!a) {
        rq->family->refuse(rq, 404);
        reply_send(rq, 404);
        return;
    }
    struct str encodings = request_header(rq, "Accept-Encoding");
    struct str body = a->plain;
    reply_header(rq, "Vary", "Accept-Encoding");
    if (a->brotli.len && encoding_is_accepted(encodings, STR("br"))) {
        body = a->brotli;
        reply_header(rq, "Content-Encoding", "br");
    } else if (a->gzip.len && encoding_is_accepted(encodings, STR("gzip"))) {
        body = a->gzip;
        reply_header(rq, "Content-Encoding", "gzip");
    }
    rq->reply.cache_control = "public, max-age=31536000, immutable";
    struct str tag = arena_printf(rq->arena, "\"%s\"", a->address + sizeof "/assets/" - 1);
    reply_header(rq, "ETag", tag.at);
    if (tag.at && str_eq(request_header(rq, "If-None-Match"), tag)) {
        reply_send(rq, 304);
        return;
    }
    reply_body(rq, a->type, body);
    reply_send(rq, 200);
}
