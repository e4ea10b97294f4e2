//! Spanish.

use super::{Class::*, Row};

pub(super) const WORDS: &[Row] = &[
    (
        Health,
        "no ha despertado|operarla|operarlo|su permiso|no ha llegado al colegio|no ha vuelto|desaparecido|le duele el pecho|me duele el pecho|golpe|mareado|mareada|vomitando|vomitado|vomita|fiebre|desmay*|inconsciente|sangra|sangrando|herido|herida|se ha caído|se ha hecho daño|roto el|roto la|ambulancia|urgencias|contracciones|rotura de aguas|alergia|alérgica|infarto|ictus|llorando|se encuentra mal|no se encuentra bien|ingresad*|quirófano|en cama",
    ),
    (
        Home,
        "saliendo agua|sale agua|cae agua|agua por|puerta abierta|forzada|sin abrirme|no me abre|fuga|gotea|goteras|inund*|olor a gas|huele a gas|humo|incendio|han entrado|llaves|la llave|código no funciona|no abre|no se abre|cerrajero|grúa|sin luz|sin agua|sin calefacción",
    ),
    (
        Ops,
        "el servidor está|en la aduana|no sale del|503|502|504|error 500|timeout|se cae|caída|caído|reinici*|bloquead*|colgad*|disco lleno|ningún pedido|nadie puede|los clientes no|no entra|no carga|no abre|no se abre|pantalla en blanco|hackead*|secuestro|cuenta equivocada|archivo equivocado|conectarte|conectarse",
    ),
    (
        Presence,
        "tengo al cliente|delante|aquí delante|enfrente|a mi lado|está en la puerta|en tu puerta|en su puerta|abajo|esperando|espera|esperan|esperamos|llevo esperando|llevamos|ya están|ya está aquí|han llegado|ha llegado|repartidor|transportista|técnico|fontanero|nadie abre|nadie contesta|no contesta|vienes|viene usted|vas a venir|sin ti|sin usted|empezamos|en el escenario|con el cliente|embarco|embarcando|despega|salgo en|sale en|todos están|estamos todos|puede venir|puedes venir",
    ),
    (
        Stakes,
        "me falta|cuánto pongo|firma a la|lo reparamos|hoy o no|sí o no|no sale del puerto|retenido|se suspende|seguimos o|cierran la ventanilla|cierra la ventanilla|lo paro|acepto|si no|de lo contrario|o perdemos|perdemos|demasiado tarde|se cae la|vence hoy|recargo|multa|sanción|eres el único|eres la única|es el único|solo tú|sólo tú|solo falta|sólo falta|falta solo|nos falta|falta su|falta tu|sí o no|parado|no podemos seguir|no puedo seguir|el plazo termina|termina hoy|acaba hoy|cancelad*|sustituirme|preséntalo tú|no llego|no llegamos|última hora|qué le digo|cuál le digo",
    ),
    (
        Now,
        "ya está|ya están|desde las|ahora|ahora mismo|desde las|acaban de|acaba de|en unos minutos|cuarto de hora|media hora|en cuanto",
    ),
    (
        Reach,
        "ven ya|venga ya|ven rápido|puede venir|puedes venir|llama al|llámame|llámeme|localizarla|localizarlo|localizarte|no conseguimos|no logramos|no te localizo|no coge|no cogen|coge el teléfono|contesta|contéstame|mi móvil|al móvil|llámame|por él|por ella|a recogerlo|a recogerla|conéctate|conéctese|únete|entra en la llamada|buzón",
    ),
    (
        Past,
        "ayer|anoche|la semana pasada|el mes pasado|resuelto|solucionado|restablecid*|ya funciona|acta|borrador|artículo|folleto|capítulo|simulacro|falsa alarma|balance",
    ),
    (
        Enter,
        "introduce|introduzca|introducir|ingresa|ingrese|usa|use|utilice|utiliza|escribe|siguiente código|este código",
    ),
    (
        SignIn,
        "iniciar sesión|inicio de sesión|acceder|acceso|verificar|verificación|confirmar|confirma|autorizar|autorización|caduca en|válido|dispositivo|operación|identidad",
    ),
    (
        Record,
        "póliza|prima|cargo|renovado|domiciliado|factura|recibo|billete|entrada|entradas|reserva|pedido|entrega|entregado|envío|paquete|pago|pagado|importe|total|saldo|extracto|consumo|transferencia|movimiento|reembolso|confirmación|confirmad*|referencia|viaje|resumen|renovación|suscripción|certificado|inscripción|disponible para descargar|copia de|recoger el pedido",
    ),
    (
        Suit,
        "en vez|en lugar|mejor el|mejor a|podríamos|podemos pasar|pasar la|mover|cambiar|aplazar|te apetece|nos tomamos|tomamos|un café|una caña|comemos|comer|cenamos|entrevista|cita|reunión|visita|quedamos|quedar|te va|le va|te viene|le viene|prefieres|prefiere|yo puedo|puedo a partir|disponible|agenda|otro día|otra hora|conflicto",
    ),
    (Then, "para entonces|antes de eso|antes de entonces"),
    (
        Trouble,
        "caída|no funciona|accidente|herido|herida|fiebre|incendio|fuego|fuga|inundación|robado|robo|comprometida|comprometido|filtración|apagón|humo|avería|averiado|hospital|urgencias",
    ),
    (
        Call,
        "llámame|llámeme|llámanos|llámenos|llama al|llame al|devuélveme la llamada|devuélvame la llamada|llamar al|dame un toque",
    ),
    (
        Urgent,
        "en cuanto puedas|en cuanto pueda|en cuanto lea|urgente|urgentes|urgentemente|urgencia|con urgencia|inmediatamente|de inmediato|inmediata|ya mismo|ahora mismo|cuanto antes|lo antes posible|lo más pronto posible|a la mayor brevedad|sin demora|en seguida|enseguida|asap|emergencia|corre prisa|urge",
    ),
    (
        Live,
        "minutos más|empezamos en diez|empezamos en cinco|sin ti|sin usted|empezamos sin|no aparece|están aquí los|tengo al cliente|esperando abajo|esperando en|me abres|puedes abrir|ábreme|está abajo|están abajo|en recepción|estoy en el aeropuerto|a punto de salir|a punto de cerrar|a punto de empezar|puedes venir|puede venir|al teléfono con|te espera|le espera|te están esperando|le están esperando|te esperan|le esperan|está esperando|están esperando|estoy fuera|estoy abajo|estoy en la puerta|en la puerta|está aquí|están aquí|estás ahí|está usted ahí|dónde estás|me he quedado fuera|atrapado|atrapada|ven a recoger|venir a recoger|venga a recoger|vengan a recoger|recogerlo|recogerla|pasar a buscar|cierra hoy|cierran hoy|empieza en|empezamos en|en este momento",
    ),
    (
        Incident,
        "archivos cifrados|han robado|está caída|están caídos|no podemos vender|no podemos cobrar|ningún pedido|devuelve error|sin abrirme|en el hospital|al hospital|han ingresado|ha ingresado|tiene fiebre|ha tenido un accidente|tuvo un accidente|perdiendo pedidos|perdiendo ventas|fuga de agua|se está quemando|sale agua|se ha roto|no arranca|caído|se cayó|se ha caído|no responde|dejó de funcionar|ha dejado de funcionar|fuera de servicio|inaccesible|inundado|robaron|hackeado|hackearon|sin luz|olor a gas|ambulancia|se desmayó|no pueden entrar|no pueden pagar|no pueden acceder|no podemos facturar|está parado|está parada",
    ),
    (
        Calm,
        "sin prisa|no hay prisa|no corre prisa|no es urgente|nada urgente|no urge|cuando puedas|cuando pueda|cuando tengas tiempo|cuando tenga tiempo|cuando tengas un rato|tómate tu tiempo|tómese su tiempo|a tu ritmo|con calma|no es necesario que haga|no es necesario hacer|no es necesario que hagas|no tienes que hacer nada|no tiene que hacer nada|no se requiere|no requiere ninguna acción|no hace falta que respondas|no hace falta que responda|no hace falta responder|no es necesario responder|para tu información|para su información|a título informativo|puede esperar|la semana que viene está bien|sin compromiso|sin presión",
    ),
    (
        Request,
        "preséntalo|envíelo|mándamelo|cuál le digo|qué le digo|acepto|seguimos|lo tienes|tiene alguien|puede venir|puedes venir|puedes conectarte|hace falta que|le digo que|cancelo|puedes|podrías|podría|puede enviar|puede usted|puede confirmar|puede firmar|puede revisar|puede decir|puede llamar|podéis|por favor|te importaría|le importaría|necesito|necesitamos|nos hace falta|me hace falta|dime|dígame|avísame|avíseme|avísanos|avísenos|mándame|envíame|envíeme|envíanos|envíenos|confírmame|confírmeme|confirma|confirme|confirmar|qué opinas|qué opina|qué te parece|qué le parece|tu opinión|su opinión|tu respuesta|su respuesta|tu firma|su firma|tu aprobación|su aprobación|tu visto bueno|su visto bueno|me gustaría|quisiera|me pregunto|te agradecería|le agradecería|le rogamos|le ruego|te ruego|rogamos|sabes si|sabe si|tienes|tiene usted|has podido|ha podido|puedo|debo|debería|llámame|llámeme|responde|respóndeme|recuerda|no olvides|no olvide|cuál de|podemos contar|me recomiendas|recomendarme|se solicita",
    ),
    (
        Formula,
        "por favor no responda|por favor, no responda|no responda a este|no respondas a este|si tiene alguna pregunta|si tiene alguna duda|si tienes alguna duda|si tiene dudas|para cualquier consulta|para cualquier duda|alguna pregunta|tiene preguntas|necesita ayuda|necesitas ayuda|póngase en contacto|contacte con nosotros|contacta con nosotros|haga clic|haz clic|no comparta|no compartas|si no ha solicitado|si no has solicitado|si usted no|encontrará adjunt*|adjunto encontrará|tenga en cuenta|ten en cuenta|conserve este|valora tu|cuéntanos qué|sabías que|quieres más|te apetece|gracias por",
    ),
    (
        Scheduling,
        "tienes disponibilidad|tiene disponibilidad|tu disponibilidad|su disponibilidad|estás disponible|está disponible el|está disponible para|estarías disponible|estaría disponible|estás libre|está libre|estarías libre|te viene bien|le viene bien|os viene bien|te vendría bien|le vendría bien|te va bien|le va bien|te parece bien el|le parece bien el|te conviene|le conviene|reprogramar|reagendar|aplazar|posponer|mover la reunión|mover nuestra|cambiar la hora|cambiar la reunión|cambiar la cita|cambio de hora|cambio de horario|adelantar la|retrasar la|cancelar la reunión|cancelar nuestra|anular la cita|agendar|concertar una|fijar una|acordar una|quedar el|quedamos|podemos quedar|podríamos quedar|podemos vernos|podríamos vernos|nos vemos|vernos|reunirnos|podemos reunirnos|una llamada|hacer una llamada|tomar un café|tomamos un café|comer el|almorzar|cenar|a qué hora|qué día|qué horario|hueco|nueva fecha|nueva hora|otra fecha|otro día|horarios posibles|entrevista el|cuándo podrías|cuándo puedes|cuándo podría|cuándo puede",
    ),
    (
        Transactional,
        "su pedido|tu pedido|confirmación de pedido|confirmación de compra|confirmación de reserva|confirmación de pago|confirmación de su|número de pedido|número de reserva|número de seguimiento|ha sido enviado|ha sido enviada|está en camino|va en camino|en reparto|ha sido entregado|entregado|entrega prevista|su paquete|tu paquete|su envío|tu envío|pago recibido|hemos recibido su|hemos recibido tu|pago realizado|pago aprobado|pago confirmado|gracias por su compra|gracias por tu compra|gracias por su pedido|gracias por tu pedido|gracias por su reserva|gracias por tu reserva|su recibo|tu recibo|recibo de|su factura|tu factura|factura n|extracto|extracto mensual|estado de cuenta|nómina|se ha cargado|ha sido cargado|cargo de|se ha abonado|ha sido abonado|transferencia recibida|transferencia realizada|reembolso|devolución|su reserva|tu reserva|su billete|tu billete|sus entradas|tus entradas|tarjeta de embarque|se ha renovado|ha sido renovada|con éxito|comprobante|justificante|resumen de su|su inscripción|tu inscripción|ha aceptado|aceptado:|aceptada:|listo para recoger|copia de seguridad completada",
    ),
    (
        Failure,
        "fallido|fallida|falló|ha fallado|fallo|error|rechazado|rechazada|denegado|denegada|no se ha podido|no se pudo|no ha podido|no pudo ser|impagado|impagada|impago|vencido|vencida|pendiente de pago|pago pendiente|atrasado|recordatorio de pago|deuda|último aviso|suspendido|suspendida|suspensión|devuelto|fondos insuficientes|interrumpido",
    ),
    (
        Code,
        "número de verificación|código siguiente|código de verificación|código de seguridad|código de acceso|código de inicio|código de un solo uso|código de confirmación|código de autenticación|contraseña de un solo uso|clave de un solo uso|su código|tu código|código es",
    ),
    (
        Reset,
        "restablecer su contraseña|restablecer tu contraseña|restablecimiento de contraseña|enlace de acceso|enlace de inicio de sesión",
    ),
    (
        Promo,
        "te espera|vuelo y hotel|pruébalo|plazas limitadas|no esperes más|estrena|se acaba hoy|se acaba|envío gratuito|compra antes|hasta 50|te van a enganchar|lecturas|reserva tu|oferta|ofertas|descuento|descuentos|% de descuento|rebajas|promoción|promociones|cupón|código promocional|envío gratis|gratis|compra ya|compra ahora|comprar ahora|aprovecha|aproveche|descubre|descubra|exclusivo|exclusiva|última oportunidad|últimas horas|últimos días|no te lo pierdas|no se lo pierda|solo hoy|sólo hoy|nueva colección|novedades|black friday|gana|sorteo|regalo|regalos|ahorra|ahorre|hasta un|desde solo|precio especial|prueba gratis|webinar|inscríbete|regístrate|reserva ya|puntos extra|tiempo limitado|liquidación|chollos|suscríbete",
    ),
    (
        Newsletter,
        "boletín|newsletter|esta semana en|en este número|en esta edición|ver en el navegador|ver online|leer más|saber más|últimas noticias|lo más leído|actualidad|receta*|consejos|agenda cultural",
    ),
    (
        Unsubscribe,
        "darse de baja|darte de baja|date de baja|dar de baja|cancelar suscripción|cancelar la suscripción|cancelar tu suscripción|dejar de recibir|recibes este correo|recibe este correo|no desea recibir|no deseas recibir|gestionar preferencias",
    ),
    (
        By,
        "antes de|antes del|antes de las|antes de la|hasta|hasta el|hasta las|a más tardar|como muy tarde|como máximo|para el|para hoy|para mañana|para las|para esta",
    ),
    (Due, "fecha límite|plazo|vence|vencimiento|fecha tope|último día para|caduca|expira|cierre de"),
    (Within, "en|dentro de|en menos de|en las próximas|en los próximos"),
    (Day(0), "hoy|esta mañana|esta tarde|esta noche|hoy mismo"),
    (Day(1), "mañana|mañana por la mañana|mañana por la tarde|mañana a primera hora"),
    (Day(2), "pasado mañana"),
    (Hour(18), "final del día|fin del día|final de la jornada"),
    (Hour(12), "mediodía|esta mañana|mañana por la mañana"),
    (Hour(9), "mañana a primera hora"),
    (Hour(19), "esta tarde|mañana por la tarde"),
    (Hour(22), "esta noche"),
    (Hour(23), "medianoche"),
    (Weekday(1), "lunes"),
    (Weekday(2), "martes"),
    (Weekday(3), "miércoles"),
    (Weekday(4), "jueves"),
    (Weekday(5), "viernes"),
    (Weekday(6), "sábado"),
    (Weekday(7), "domingo"),
    (NextWeek, "próxima semana|semana que viene|la semana próxima"),
    (ThisWeek, "esta semana|final de la semana|fin de semana|final de semana"),
    (ThisMonth, "final de mes|fin de mes|este mes|finales de mes"),
    (NextMonth, "próximo mes|mes que viene|el próximo mes|mes próximo"),
    (Month(1), "enero"),
    (Month(2), "febrero"),
    (Month(3), "marzo"),
    (Month(4), "abril"),
    (Month(5), "mayo"),
    (Month(6), "junio"),
    (Month(7), "julio"),
    (Month(8), "agosto"),
    (Month(9), "septiembre|setiembre"),
    (Month(10), "octubre"),
    (Month(11), "noviembre"),
    (Month(12), "diciembre"),
    (Minutes(1), "minuto|minutos|min"),
    (Minutes(60), "hora|horas"),
    (Minutes(1440), "día|días"),
    (Minutes(10080), "semana|semanas"),
    (Number(1), "una|un|la próxima"),
    (Number(2), "dos"),
    (Number(3), "tres"),
    (Number(4), "cuatro"),
    (Number(5), "cinco"),
    (Number(6), "seis"),
    (Number(7), "siete"),
    (Number(8), "ocho"),
    (Number(9), "nueve"),
    (Number(10), "diez"),
    (Number(11), "once"),
    (Number(12), "doce"),
    (Machine, "mensaje automatico|generado automaticamente"),
];
