import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.ConnectException;
import java.rmi.ConnectIOException;
import java.rmi.UnmarshalException;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.Attribute;
import javax.management.InstanceNotFoundException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import javax.naming.NamingException;
import javax.rmi.ssl.SslRMIClientSocketFactory;

/**
 * Executes Jolokia's bulk reads over JMX-RMI, for spark_apps.sources.jmx_rmi: one request per line on stdin; responses on
 * stdout when they are complete: `<id> <status> <bytes>`, then the reply. Compiled by Spark's Janino, which supports
 * neither lambdas nor generic types.
 */
public class JmxRmi {
  static final int AT_ONCE = 8; // calls per JVM: each is a round trip, and a broker has an MBean per topic
  static final ObjectMapper JSON = new ObjectMapper();
  static final PrintStream OUT = System.out;

  public static void main(String[] arguments) throws Exception {
    BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    String line;
    while ((line = questions.readLine()) != null) {
      final Map question = (Map) JSON.readValue(line, Map.class);
      Thread asking = new Thread() {
        public void run() {
          answer(question);
        }
      };
      asking.setDaemon(true);
      asking.start();
    }
    Runtime.getRuntime().halt(0); // the Python task has ended: pending requests have no reader
  }

  static void answer(Map question) {
    byte[] reply;
    String status = "read";
    try {
      Limited limited = new Limited(((Number) question.get("max_bytes")).intValue());
      JSON.writeValue(limited, read(question));
      reply = limited.toByteArray();
    } catch (Throwable failure) {
      Throwable cause = failure;
      boolean lookingUp = false;
      while (cause.getCause() != null) {
        lookingUp |= cause instanceof NamingException;
        cause = cause.getCause();
      }
      status = cause instanceof LimitExceeded ? "limit" : failure instanceof SecurityException ? "locked"
          : cause instanceof ConnectException ? (lookingUp ? "closed" : "unreachable") : "failed";
      reply = (cause instanceof LimitExceeded ? cause.getMessage() : String.valueOf(cause)).getBytes();
    }
    synchronized (OUT) {
      OUT.print(question.get("id") + " " + status + " " + reply.length + "\n");
      OUT.write(reply, 0, reply.length);
      OUT.flush();
    }
  }

  /** A response that exceeds a limit; the message has the limit. */
  static class LimitExceeded extends IOException {
    LimitExceeded(String message) {
      super(message);
    }
  }

  static class Limited extends ByteArrayOutputStream {
    final int most;

    Limited(int most) {
      this.most = most;
    }

    public void write(byte[] bytes, int from, int length) {
      if (size() + length > most) {
        throw new IllegalStateException(new LimitExceeded("response exceeds " + (most >> 20) + " MiB"));
      }
      super.write(bytes, from, length);
    }
  }

  static List read(Map question) throws Exception {
    Map settings = new HashMap();
    if (question.get("user") != null) {
      String[] credentials = {(String) question.get("user"), (String) question.get("password")};
      settings.put(JMXConnector.CREDENTIALS, credentials);
    }
    JMXConnector connector = connect(new JMXServiceURL((String) question.get("url")), settings);
    ExecutorService calls = Executors.newFixedThreadPool(AT_ONCE);
    try {
      List replies = new ArrayList();
      for (Iterator reads = ((List) question.get("reads")).iterator(); reads.hasNext();) {
        int beans = ((Number) question.get("max_beans")).intValue();
        replies.add(reply((Map) reads.next(), connector.getMBeanServerConnection(), calls, beans));
      }
      return replies;
    } finally {
      calls.shutdownNow();
      connector.close();
    }
  }

  /** A registry may require TLS too (`registry.ssl=true`): then a plain request gets no RMI response. */
  static JMXConnector connect(JMXServiceURL url, Map settings) throws Exception {
    try {
      return JMXConnectorFactory.connect(url, settings);
    } catch (IOException refusal) {
      if (!(root(refusal) instanceof ConnectIOException)) {
        throw refusal;
      }
      settings.put("com.sun.jndi.rmi.factory.socket", new SslRMIClientSocketFactory());
      try {
        return JMXConnectorFactory.connect(url, settings);
      } catch (IOException refusedToo) {
        // Without TLS support either, the error of the plain request is reported.
        throw root(refusedToo) instanceof GeneralSecurityException ? refusedToo : refusal;
      }
    }
  }

  static Throwable root(Throwable failure) {
    return failure.getCause() == null ? failure : root(failure.getCause());
  }

  /** Reply in Jolokia's format: for a pattern the attributes of each MBean by name, otherwise those of the one MBean. */
  static Map reply(Map read, final MBeanServerConnection beans, ExecutorService calls, int most) throws Exception {
    ObjectName pattern = new ObjectName((String) read.get("mbean"));
    final String[] attributes = (String[]) ((List) read.get("attribute")).toArray(new String[0]);
    Map reply = new LinkedHashMap();
    Map value = new LinkedHashMap();
    try {
      List names = new ArrayList(beans.queryNames(pattern, null));
      if (names.size() > most) {
        throw new LimitExceeded("response exceeds " + most + " MBeans");
      }
      List asked = new ArrayList();
      for (Iterator each = names.iterator(); each.hasNext();) {
        final ObjectName name = (ObjectName) each.next();
        asked.add(new Callable() {
          public Object call() throws Exception {
            return attributes(beans, name, attributes);
          }
        });
      }
      List answers = calls.invokeAll(asked);
      for (int i = 0; i < names.size(); i++) {
        Object found = ((Future) answers.get(i)).get();
        if (found != null) {
          value.put(names.get(i).toString(), found);
        }
      }
    } catch (Exception failure) {
      if (!(failure instanceof SecurityException) && !(failure.getCause() instanceof SecurityException)) {
        throw failure;
      }
      reply.put("status", 403);
      return reply;
    }
    reply.put("status", value.isEmpty() ? 404 : 200);
    reply.put("value", pattern.isPattern() || value.isEmpty() ? value : value.values().iterator().next());
    return reply;
  }

  static Map attributes(MBeanServerConnection beans, ObjectName name, String[] wanted) throws Exception {
    try {
      Map found = new LinkedHashMap();
      for (Iterator each = beans.getAttributes(name, wanted).iterator(); each.hasNext();) {
        Attribute attribute = (Attribute) each.next();
        found.put(attribute.getName(), plain(attribute.getValue()));
      }
      return found;
    } catch (InstanceNotFoundException gone) {
      return null;
    } catch (UnmarshalException unknown) {
      if (!(root(unknown) instanceof ClassNotFoundException)) {
        throw unknown;
      }
      return wanted.length > 1 ? oneByOne(beans, name, wanted) : new LinkedHashMap();
    }
  }

  /** Without attributes of a class that only the remote JVM has, such as the state of a Kafka Streams client. */
  static Map oneByOne(MBeanServerConnection beans, ObjectName name, String[] wanted) throws Exception {
    Map found = new LinkedHashMap();
    for (int i = 0; i < wanted.length; i++) {
      Map one = attributes(beans, name, new String[] {wanted[i]});
      if (one == null) {
        return null;
      }
      found.putAll(one);
    }
    return found;
  }

  static Object plain(Object value) {
    if (value instanceof CompositeData) {
      CompositeData composite = (CompositeData) value;
      Map items = new LinkedHashMap();
      for (Iterator keys = composite.getCompositeType().keySet().iterator(); keys.hasNext();) {
        String key = (String) keys.next();
        items.put(key, plain(composite.get(key)));
      }
      return items;
    }
    return value == null || value instanceof Number || value instanceof Boolean ? value : value.toString();
  }
}
