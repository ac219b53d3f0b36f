export { waitUntil } from './wait-until.ts';
export { ScriptedAgent } from './scripted-agent.ts';
