// Browsers start no Worker from a page that was opened as a file, and the search of these pages is one. Here its script runs in a hidden
// frame instead. The offline plugin would load such a script from elsewhere, unless one whose name has "iframe-worker" in it is there.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow, script = inside.document.createElement('script');
      inside.postMessage = data => this.dispatchEvent(new MessageEvent('message', {data}));
      script.src = url;
      this.ready = new Promise(resolve => { script.onload = () => resolve(inside); });
      inside.document.body.append(script);
    }

    postMessage(data) {
      this.ready.then(inside => inside.dispatchEvent(new inside.MessageEvent('message', {data})));
    }
  };
}
