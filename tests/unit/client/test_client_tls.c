/* TLS: a server's certificate must be valid for its name and issued by a trusted authority. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/client.h"

static struct {
    SSL_CTX *tls;
    int listener, port;
    pthread_t thread;
    char ca_file[64];
} server;

/* A self-signed certificate for 127.0.0.1 only. */
static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME *name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"fake", -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_EXTENSION *alternative = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(x, alternative, -1);
    X509_EXTENSION_free(alternative);
    X509_sign(x, key, EVP_sha256());
    return x;
}

static void *serve(void *context)
{
    (void)context;
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    for (int fd; (fd = accept(server.listener, NULL, NULL)) >= 0; close(fd)) {
        SSL *ssl = SSL_new(server.tls);
        char request[4096];
        SSL_set_fd(ssl, fd);
        if (SSL_accept(ssl) == 1 && SSL_read(ssl, request, sizeof request) > 0) {
            SSL_write(ssl, answer, sizeof answer - 1);
            SSL_shutdown(ssl);
        }
        SSL_free(ssl);
    }
    return NULL;
}

static int start(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = make_certificate(key);
    server.tls = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(server.tls, certificate);
    SSL_CTX_use_PrivateKey(server.tls, key);
    snprintf(server.ca_file, sizeof server.ca_file, "/tmp/reclaim-ca.XXXXXX");
    FILE *ca = fdopen(mkstemp(server.ca_file), "w");
    PEM_write_X509(ca, certificate);
    fclose(ca);
    X509_free(certificate);
    EVP_PKEY_free(key);
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server.listener, (struct sockaddr *)&at, sizeof at) || listen(server.listener, 16) ||
        getsockname(server.listener, (struct sockaddr *)&at, &len))
        return -1;
    server.port = ntohs(at.sin_port);
    return pthread_create(&server.thread, NULL, serve, NULL);
}

static int stop(void **state)
{
    (void)state;
    shutdown(server.listener, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.listener);
    SSL_CTX_free(server.tls);
    unlink(server.ca_file);
    return 0;
}

static bool over;

static void done(struct client_call *call)
{
    (void)call;
    over = true;
}

static struct client_call ask(const char *host, const char *ca_file)
{
    char url[64];
    snprintf(url, sizeof url, "https://%s:%d/", host, server.port);
    struct client *client = client_new(&(struct client_config){ca_file, 4});
    struct client_call call = {.url = url, .limit_ns = 30 * NS_PER_S, .done = done};
    assert_non_null(client);
    over = false;
    client_send(client, &call);
    while (!over)
        client_turn(client, clock_ns() + NS_PER_S);
    client_free(client);
    return call;
}

static void a_server_that_a_trusted_authority_knows_is_asked(void **state)
{
    (void)state;
    struct client_call call = ask("127.0.0.1", server.ca_file);
    assert_int_equal(call.err, OK);
    assert_int_equal(call.status, 200);
}

static void a_server_that_only_vouches_for_itself_is_refused(void **state)
{
    (void)state;
    struct client_call call = ask("127.0.0.1", NULL);
    assert_int_equal(call.err, ERR_CLOSED);
    assert_int_equal(call.status, 0);
}

static void a_certificate_for_another_name_is_refused(void **state)
{
    (void)state;
    struct client_call call = ask("localhost", server.ca_file);
    assert_int_equal(call.err, ERR_CLOSED);
    assert_int_equal(call.status, 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* the fake servers write to connections that clients have closed */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_a_trusted_authority_knows_is_asked),
        cmocka_unit_test(a_server_that_only_vouches_for_itself_is_refused),
        cmocka_unit_test(a_certificate_for_another_name_is_refused),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
