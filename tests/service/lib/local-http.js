// A local HTTP server for what cannot run here; closed with the scope.

import http from 'node:http';

import { stageOf } from './stage.js';

export async function listenLocally(scope, take) {
  const server = http.createServer(take);
  server.on('clientError', (fault, socket) => socket.destroy());
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  stageOf(scope).after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return server;
}
