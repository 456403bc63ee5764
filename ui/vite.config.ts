import { defineConfig } from 'vite';

// One script and one style sheet: the server embeds what lies in dist/, names carry a hash.
export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: { output: { manualChunks: () => 'app' } },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:7780' } },
  logLevel: 'warn',
});
