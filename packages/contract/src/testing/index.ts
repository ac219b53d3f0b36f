export { waitUntil } from './wait-until.ts';
