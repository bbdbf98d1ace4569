// A switch that replies late, not at all, or with invalid data, which Kamailio rarely does.

import { listenLocally } from './local-http.js';

const nonsense = {
  html: [200, '<html>It works!</html>'],
  empty: [200, ''],
  array: [200, '[]'],
  'another id': [200, '{"jsonrpc":"2.0","id":2,"result":{}}'],
  'no version': [200, '{"id":1,"result":{}}'],
  'no result': [200, '{"jsonrpc":"2.0","id":1}'],
  'odd dialog': [200, '{"jsonrpc":"2.0","id":1,"result":{"state":"five"}}'],
  'odd state': [200, '{"jsonrpc":"2.0","id":1,"result":{"state":99}}'],
  'a list': [200, '{"jsonrpc":"2.0","id":1,"result":[]}'],
  error: [500, '{"jsonrpc":"2.0","id":1,"error":{"code":500,"message":"Internal error"}}'],
  'bad gateway': [502, 'Bad Gateway'],
  redirect: [302, ''],
  huge: [200, `{"jsonrpc":"2.0","id":1,"result":{},"more":"${'x'.repeat(100_000)}"}`],
};

export class FakeSwitch {
  static nonsense = Object.keys(nonsense);
  dialogs = new Map(); // SIP Call-ID: { state, tag }
  asked = [];
  answers = 'well'; // or 'silence', 'close', or a key of nonsense

  static async start(scope) {
    const fake = new FakeSwitch();
    fake.server = await listenLocally(scope, (request, response) => fake.#take(request, response));
    return fake;
  }

  get env() {
    return { RECLAIM_SWITCH_RPC_URL: `http://127.0.0.1:${this.server.address().port}/RPC` };
  }

  /** Adds these calls, with their status. */
  has(calls) {
    for (const call of calls) this.dialogs.set(call.sip_call_id, { state: call.status === 'progressing' ? 4 : 2, tag: call.to_tag ?? '' });
  }

  #take(request, response) {
    let body = '';
    request.on('error', () => {});
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      const question = JSON.parse(body);
      this.asked.push(question);
      if (this.answers === 'silence') return;
      if (this.answers === 'close') {
        request.socket.destroy();
        return;
      }
      const [status, text] = nonsense[this.answers] ?? [200, JSON.stringify({ jsonrpc: '2.0', id: question.id, ...this.#do(question) })];
      response.writeHead(status, { 'Content-Type': 'application/json', Location: '/elsewhere' });
      response.end(text);
    });
  }

  #do({ method, params: [callId, second, third] }) {
    const dialog = this.dialogs.get(callId);
    if (method === 'dlg.dlg_list') return { result: dialog ? { state: dialog.state, caller: { tag: second, cseq: '1' }, callee: { tag: dialog.tag } } : {} };
    if (method === 'dlg.terminate_dlg' && dialog?.state === 4 && dialog.tag === third) this.dialogs.delete(callId);
    else if (method === 'tm.cancel' && dialog?.state === 2 && second === '1') this.dialogs.delete(callId);
    else if (method === 'tm.cancel' && !dialog) return { error: { code: 400, message: 'Transaction not found' } };
    return { result: {} };
  }
}
