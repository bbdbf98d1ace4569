/* `/docs`: the reference of the API, made at build from openapi.json (tools/docs.py). It is the same for every reader of a language:
 * written and compressed once, at the first request for it. */
#include <brotli/encode.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "pages/assets.h"
#include "pages/page.h"
#include "pages/routes.h"

#define BROTLI_QUALITY 6
#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for gzip */

/* cache: reference */
static struct reference {
    struct str plain, brotli, gzip;
    char tag[DIGEST_HEX_LEN + 3]; /* in quotation marks */
} references[LANGUAGES];
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static struct str keep(const void *bytes, size_t len)
{
    char *copy = malloc(len);
    if (copy)
        memcpy(copy, bytes, len);
    return (struct str){copy, copy ? len : 0};
}

static struct str compress_brotli(struct str text)
{
    size_t len = BrotliEncoderMaxCompressedSize(text.len);
    uint8_t *into = malloc(len);
    struct str packed = {NULL, 0};
    if (into && BrotliEncoderCompress(BROTLI_QUALITY, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, text.len,
                                      (const uint8_t *)text.at, &len, into))
        packed = keep(into, len);
    free(into);
    return packed;
}

static struct str compress_gzip(struct str text)
{
    z_stream z = {0};
    struct str packed = {NULL, 0};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return packed;
    uLong most = deflateBound(&z, text.len);
    Bytef *into = malloc(most);
    z.next_in = (Bytef *)(uintptr_t)text.at;
    z.avail_in = (uInt)text.len;
    z.next_out = into;
    z.avail_out = (uInt)most;
    if (into && deflate(&z, Z_FINISH) == Z_STREAM_END)
        packed = keep(into, z.total_out);
    free(into);
    deflateEnd(&z);
    return packed;
}

/* From the page that was written. Out of memory: the next request tries again. */
static void fill(struct reference *r, struct str html)
{
    char hex[DIGEST_HEX_LEN + 1];
    struct digest digest = digest_sha256(html);
    digest_hex(&digest, hex);
    (void)snprintf(r->tag, sizeof r->tag, "\"%s\"", hex);
    r->brotli = compress_brotli(html);
    r->gzip = compress_gzip(html);
    r->plain = keep(html.at, html.len);
}

static const struct reference *reference_of(struct page *p)
{
    struct reference *r = &references[p->reader.language];
    pthread_mutex_lock(&writing);
    if (!r->plain.at && page_write(p, "docs", TEXT_DOCS_TITLE, 200) && p->rq->reply.status == 200)
        fill(r, p->rq->reply.body);
    pthread_mutex_unlock(&writing);
    return r->plain.at ? r : NULL;
}

static void docs_handle(struct request *rq)
{
    struct page *p = page_begin(rq);
    if (!p)
        return;
    bool moved = clock_sandbox_shift_ms() != 0; /* then the page shows the time */
    const struct reference *r = moved ? NULL : reference_of(p);
    if (!r) {
        page_show(p, "docs", TEXT_DOCS_TITLE, 200);
        return;
    }
    struct str encodings = request_header(rq, "Accept-Encoding");
    bool brotli = r->brotli.len && encoding_is_accepted(encodings, STR("br"));
    bool gzip = !brotli && r->gzip.len && encoding_is_accepted(encodings, STR("gzip"));
    page_write_static(p, brotli ? r->brotli : gzip ? r->gzip : r->plain, brotli ? "br" : gzip ? "gzip" : NULL, r->tag);
    reply_send(rq, rq->reply.status);
}

void docs_free(void)
{
    for (size_t i = 0; i < LANGUAGES; i++) {
        free((char *)(uintptr_t)references[i].plain.at);
        free((char *)(uintptr_t)references[i].brotli.at);
        free((char *)(uintptr_t)references[i].gzip.at);
        references[i] = (struct reference){0};
    }
}

const struct route docs_routes[] = {
    {.method = METHOD_GET, .path = "/docs", .handle = docs_handle},
    {0},
};
