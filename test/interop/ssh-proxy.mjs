// ProxyCommand of OpenSSH: the published client serves SSH for one connection on its stdin and stdout.
const { Sandbox } = await import(process.env.MSB_LIBRARY);

const [name, hostKeyPath, authorizedKeysPath] = process.argv.slice(2);
const sandbox = await (await Sandbox.get(name)).connect();
const server = await sandbox.ssh().prepareServer({ hostKeyPath, authorizedKeysPath, sftp: true });
await server.serveConnection();
process.exit(0);
